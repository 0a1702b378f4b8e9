// gateway/intercept/intercept.ts: inspects the requests to one host. It ends the client's TLS, judges every request, and
// forwards it over its own TLS connection, with secrets that the client never sees. Plain http:// takes the same path.
// Invariants: the origin gets only bytes of requests that were understood and allowed. Secrets go only to the verified host.
// After an error of either side the connection ends; it never goes on half understood.
import type { Socket } from 'node:net';
import { AgsError } from '../../protocol/errors.ts';
import { hostAndPort } from '../../protocol/host-name.ts';
import { httpAnswer } from '../front/answers.ts';
import { LOOKED_AT, type ModelMeter, type ModelRequest } from '../meter/model-meter.ts';
import { createBody } from './body.ts';
import { readHead, send } from './byte-source.ts';
import type { Authority } from './certificate.ts';
import { judge } from './request-target.ts';
import { createRedactor } from './redact.ts';
import { readRequestHead, type RequestHead } from './request-head.ts';
import { expectsContinue, type LiveSecret, presentSecrets, type Rewritten, secretForms } from './request-rewrite.ts';
import { type Relayed, relayResponse } from './response-relay.ts';
import { closeGently, type Dialled, type End, openClient, openOrigin } from './secure-ends.ts';
import { tunnel } from './web-socket.ts';

export type { LiveSecret } from './request-rewrite.ts';

export interface InterceptInput {
  /** The sandbox's socket, paused, created with `allowHalfOpen`. */
  readonly client: Socket;
  /** Bytes that were already read from it. */
  readonly first: Buffer;
  /** The origin's protocol. The client speaks TLS if there is an `authority`, and plain HTTP otherwise. */
  readonly upstream: 'https' | 'http';
  readonly host: string;
  readonly port: number;
  readonly authority: Authority | null;
  /** Authorities trusted for the origin, in PEM. All connections share one array, so it is parsed once. */
  readonly roots: readonly string[];
  /** Opens the checked TCP connection to the origin. */
  dial(): Promise<Dialled>;
  /** null: allowed; otherwise the sentence for the 403. Called for every request, with a canonical path. */
  decide(method: string, path: string): string | null;
  readonly secrets: readonly LiveSecret[];
  /** An endpoint's path prefix, which is removed; otherwise ''. */
  readonly basePath: string;
  /** False: the budget is spent, so the connection ends. */
  count(direction: 'out' | 'in', bytes: number): boolean;
  onRequest(info: RequestInfo): void;
  /** Counts what models are asked and answer; null: nothing is counted. */
  readonly meter?: ModelMeter | null;
  /** No rule depends on the path, so it is sent unchanged. */
  readonly anyPath: boolean;
  /** A proxy's client may name another host in its next request, so the connection ends with the response. */
  readonly single: boolean;
  /** How long a head may take to arrive; default 30 s. */
  readonly headMs?: number;
  /** How long a connection may stay idle between requests; default 5 minutes. */
  readonly idleMs?: number;
}

export interface RequestInfo {
  readonly method: string;
  readonly path: string;
  readonly status: number | null;
  readonly refused: string | null;
  readonly bytesOut: number;
  readonly bytesIn: number;
  readonly ms: number;
}

interface Line {
  readonly input: InterceptInput;
  readonly client: End;
  origin: End | null;
  /** Ends an idle connection. */
  idle: NodeJS.Timeout | null;
  isIdle: boolean;
}

/** The outcome of one request; `kept`: the connection can carry another. */
interface Outcome {
  readonly status: number | null;
  readonly refused: string | null;
  readonly kept: boolean;
}

interface Tally {
  out: number;
  in: number;
}

const HEAD_MS = 30_000;
const IDLE_MS = 300_000;
const HALF_CLOSED_MS = 120_000;

/** Resolves when the connection has ended; never rejects. */
export async function intercept(input: InterceptInput): Promise<void> {
  let line: Line | null = null;
  try {
    const client = openClient(input.client, input.first, input.authority, input.host);
    line = { input, client, origin: null, idle: null, isIdle: false };
    client.socket.once('close', () => line?.origin?.socket.destroy());
    // A client that has ended its side may still read. One that is gone is noticed on the next write, or by this timeout.
    client.socket.once('end', () => client.socket.setTimeout(HALF_CLOSED_MS, () => client.socket.destroy()));
    for (let served = 0; await serveNext(line, served); served += 1);
    line.origin?.socket.destroy();
    await closeGently(client);
  } catch {
    // An internal error ends this connection and no other.
  } finally {
    if (line !== null) clearTimeout(line.idle ?? undefined);
    input.client.destroy();
  }
}

async function serveNext(line: Line, served: number): Promise<boolean> {
  const { input, client } = line;
  const result = await nextHead(line, served);
  if (result === null) return false;
  const started = performance.now();
  const tally: Tally = { out: 0, in: 0 };
  if (result.kind === 'bad') {
    const outcome = await refuse(client, null, result.status, `ags refuses this request: ${result.problem}.`);
    tell(input, '-', '-', outcome, tally, started);
    return false;
  }
  const head = input.single ? { ...result.head, keepAlive: false } : result.head;
  // Most secrets never expire, so there is nothing to wait for.
  const expires = input.secrets.some(({ renew }) => renew !== undefined);
  const secrets = expires ? await presentSecrets(input.secrets).catch(sentenceOf) : input.secrets;
  if (typeof secrets === 'string') {
    const outcome = await refuse(client, { ...head, keepAlive: false }, 401, secrets);
    tell(input, head.method, '-', outcome, tally, started);
    return false;
  }
  const judged = judge(expires ? { ...input, secrets } : input, head);
  const outcome =
    'sentence' in judged
      ? await refuse(client, head, judged.status, judged.sentence)
      : await metered(line, judged.path, { head, tally, secrets, request: judged.request, upgrade: judged.upgrade });
  tell(input, head.method, judged.path, outcome, tally, started);
  return outcome.kept;
}

async function metered(line: Line, path: string, given: Omit<Exchange, 'model'>): Promise<Outcome> {
  const { input, client } = line;
  const { head, upgrade } = given;
  const endpoint = input.basePath !== '';
  const { method, headers } = head;
  const model = input.meter?.open({ method, path, headers, upgrade, endpoint }) ?? null;
  if (typeof model === 'string') return refuse(client, head, 403, `ags refuses this request: ${model}.`);
  if (head.body.kind === 'none') model?.complete();
  try {
    const refusal = model?.held === true ? await lookAhead(client, head, model) : null;
    if (refusal !== null) return await refuse(client, head, 403, `ags refuses this request: ${refusal}.`);
    const outcome = await exchange(line, { ...given, model });
    model?.close(outcome.status !== null && outcome.refused === null && !client.socket.destroyed);
    return outcome;
  } finally {
    model?.close(false);
  }
}

/** Reads the beginning of a body and puts it back, before anything of the request is sent. A sentence: it is refused. */
async function lookAhead(client: End, head: RequestHead, model: ModelRequest): Promise<string | null> {
  const body = createBody(head.body);
  const read: Buffer[] = [];
  let bytes = 0;
  // A client that waits to be asked for its body is not asked.
  for (let done = head.body.kind === 'none' || expectsContinue(head); !done && bytes < LOOKED_AT;) {
    const chunk = await client.source.read();
    if (chunk === null) break;
    read.push(chunk);
    bytes += chunk.length;
    const taken = body.take(chunk);
    if ('bad' in taken) break;
    for (const data of taken.data) model.sent(data);
    done = taken.done;
    if (done) model.complete();
  }
  client.source.unread(Buffer.concat(read));
  return model.judge();
}

function tell(
  input: InterceptInput,
  method: string,
  path: string,
  { status, refused }: Outcome,
  tally: Tally,
  started: number,
): void {
  const ms = Math.round(performance.now() - started);
  input.onRequest({ method, path, status, refused, bytesOut: tally.out, bytesIn: tally.in, ms });
}

function sentenceOf(error: unknown): string {
  return `ags cannot sign this request in: ${error instanceof AgsError ? `${error.message} ${error.hint ?? ''}` : 'an error of its own.'}`;
}

async function nextHead(line: Line, served: number): ReturnType<typeof readHead<RequestHead>> {
  const limit = line.input.headMs ?? HEAD_MS;
  const giveUp = (): unknown => line.client.socket.destroy();
  let timer: NodeJS.Timeout | undefined;
  if (served === 0) timer = setTimeout(giveUp, limit);
  else awaitNext(line);
  const result = await readHead(line.client.source, readRequestHead, () => {
    line.isIdle = false;
    clearTimeout(timer);
    timer = setTimeout(giveUp, limit);
  });
  line.isIdle = false;
  if (timer !== undefined) clearTimeout(timer);
  return result;
}

/** One timer for all requests of a connection: refreshing it costs less than creating one. */
function awaitNext(line: Line): void {
  line.isIdle = true;
  if (line.idle !== null) return void line.idle.refresh();
  line.idle = setTimeout(() => line.isIdle && line.client.socket.destroy(), line.input.idleMs ?? IDLE_MS);
}

interface Exchange {
  readonly head: RequestHead;
  readonly secrets: readonly LiveSecret[];
  readonly tally: Tally;
  readonly request: Rewritten;
  readonly upgrade: boolean;
  /** null: it is not metered. */
  readonly model: ModelRequest | null;
}

async function exchange(line: Line, given: Exchange): Promise<Outcome> {
  const { client, input } = line;
  const { head } = given;
  const kept = line.origin !== null && line.origin.source.state === 'open' && !line.origin.source.waiting;
  const origin = kept ? line.origin : await openAnew(line);
  if (origin === null) return lost;
  if ('reason' in origin) return refuse(client, head, origin.status, origin.reason);
  const { relayed, upload } = await transfer(line, origin, given);
  if (relayed.kind === 'passed')
    return { status: relayed.status, refused: null, kept: relayed.kept && upload.state === 'sent' };
  if (relayed.kind === 'switched') return { status: relayed.status, refused: null, kept: false };
  origin.socket.destroy();
  line.origin = null;
  if (relayed.kind === 'broken' || upload.state === 'client gone') {
    client.socket.destroy();
    return { ...lost, status: relayed.kind === 'broken' ? relayed.status : null };
  }
  // An origin may close a kept connection at any moment, before it reads the request: a safe request is sent again.
  const again = kept && relayed.problem === null && head.body.kind === 'none' && SAFE.includes(head.method);
  if (again && client.source.state !== 'broken') return exchange(line, given);
  const place = hostAndPort(input.host, input.port);
  if (upload.state === 'spent') {
    return refuse(
      client,
      { ...head, keepAlive: false },
      403,
      `ags has closed the connection to ${place}: the budget of bytes is spent.`,
    );
  }
  if (upload.problem !== null) return refuse(client, head, 400, `ags refuses this request: ${upload.problem}.`);
  return refuse(
    client,
    head,
    502,
    `ags got no answer from ${place}: ${relayed.problem ?? 'it closed the connection'}.`,
  );
}

const lost: Outcome = { status: null, refused: null, kept: false };
const SAFE: readonly string[] = ['GET', 'HEAD', 'OPTIONS'];

async function openAnew(line: Line): Promise<End | null | Extract<Dialled, { kind: 'refused' }>> {
  line.origin?.socket.destroy();
  line.origin = null;
  const opened = await openOrigin(line.input, () => line.input.dial());
  if (opened.kind === 'refused') return opened;
  line.origin = opened.end;
  if (!line.client.socket.destroyed) return opened.end;
  opened.end.socket.destroy();
  return null;
}

interface Upload {
  state: 'sending' | 'sent' | 'client gone' | 'origin gone' | 'bad' | 'spent';
  problem: string | null;
}

/** Sends and receives at the same time: a response may come before the request was sent completely. */
async function transfer(line: Line, origin: End, given: Exchange): Promise<{ relayed: Relayed; upload: Upload }> {
  const { input, client } = line;
  const { head, tally } = given;
  const { secrets } = given;
  const redactor = secrets.length === 0 ? null : createRedactor(secretForms(secrets, given.request.hide));
  const upload: Upload = { state: 'sending', problem: null };
  const uploading = sendRequest(line, origin, given, upload);
  const count = (direction: 'in' | 'out', bytes: number): boolean => {
    tally[direction] += bytes;
    if (input.count(direction, bytes)) return true;
    upload.state = 'spent';
    return false;
  };
  const relayed = await relayResponse({
    source: origin.source,
    method: head.method,
    version: head.version,
    upgrade: given.upgrade,
    last: !head.keepAlive || client.source.state !== 'open',
    redactor,
    write: (bytes) => send(client.socket, bytes),
    count: (bytes) => count('in', bytes),
    onHead: ({ status, headers }) => given.model?.head(status, headers),
    onData: (data) => given.model?.received(data),
  });
  if (relayed.kind === 'switched') await tunnel(client, origin, redactor, count);
  // A client that got the response before it sent its body may skip the body: the start of the next request is unknown.
  if (relayed.kind === 'passed' && relayed.kept && upload.state === 'sending' && !expectsContinue(head)) {
    const giveUp = (): void => void client.socket.destroy();
    client.socket.setTimeout(HEAD_MS, giveUp);
    await uploading;
    client.socket.setTimeout(0, giveUp);
  }
  return { relayed, upload };
}

// The caller awaits this later, so it must not reject; a failure ends the exchange by closing the origin.
async function sendRequest(line: Line, origin: End, given: Exchange, upload: Upload): Promise<void> {
  try {
    const { head, request } = given;
    const bodiless = head.body.kind === 'none' || (head.body.kind === 'length' && head.body.bytes === 0);
    // Most requests have no body and need no waiting.
    const problem = bodiless
      ? passOut(line, origin, given, request.bytes)
      : await sendWithBody(line, origin, given, upload);
    upload.state = (problem instanceof Promise ? await problem : problem) ?? 'sent';
    // Closing the origin also tells the reader that no response will come.
    if (upload.state !== 'sent') origin.socket.destroy();
  } catch {
    origin.socket.destroy();
  }
}

type Stopped = Exclude<Upload['state'], 'sending' | 'sent'> | null;

/** null: sent completely. */
async function sendWithBody(line: Line, origin: End, given: Exchange, upload: Upload): Promise<Stopped> {
  const { source } = line.client;
  const { model } = given;
  const body = createBody(given.head.body);
  let before: Buffer | null = given.request.bytes;
  for (let done = false; !done || before !== null; before = null) {
    let bytes = before ?? EMPTY;
    // If no byte of the body is here yet, send the head alone: the client may wait for an answer to it.
    if (before === null || source.waiting) {
      const next = source.read();
      const chunk = next instanceof Promise ? await next : next;
      if (chunk === null) return 'client gone';
      const taken = body.take(chunk);
      if ('bad' in taken) {
        upload.problem = taken.bad;
        return 'bad';
      }
      if (model !== null && !model.held) {
        for (const data of taken.data) model.sent(data);
        if (taken.done) model.complete();
      }
      source.unread(taken.rest);
      done = taken.done;
      bytes = before === null ? taken.used : Buffer.concat([before, taken.used]);
    }
    const passed = passOut(line, origin, given, bytes);
    const stopped = passed instanceof Promise ? await passed : passed;
    if (stopped !== null) return stopped;
  }
  return null;
}

function passOut({ input }: Line, origin: End, { tally }: Exchange, bytes: Buffer): Stopped | Promise<Stopped> {
  tally.out += bytes.length;
  if (!input.count('out', bytes.length)) return 'spent';
  const sent = send(origin.socket, bytes);
  if (sent instanceof Promise) return sent.then((taken) => (taken ? null : 'origin gone'));
  return sent ? null : 'origin gone';
}

const EMPTY = Buffer.alloc(0);

async function refuse(client: End, head: RequestHead | null, status: number, sentence: string): Promise<Outcome> {
  // After a request that was not understood, the connection ends.
  const understood = head !== null && status !== 400 && status !== 421;
  const kept = understood && head.keepAlive && head.body.kind === 'none' && client.source.state === 'open';
  const text = httpAnswer(status, sentence, { kept, bare: head?.method === 'HEAD' });
  const sent = await send(client.socket, Buffer.from(text, 'latin1'));
  return { status, refused: sentence, kept: kept && sent };
}
