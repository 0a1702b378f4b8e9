// gateway/intercept.ts: looks into the requests to one host: ends the client's TLS, judges every request, sends it on over a
// TLS connection of its own, with secrets that the client never sees. Plain http:// is read by the same eyes.
// Invariants: no byte goes to the origin that is not part of a request that was understood and allowed. Secrets go to the
// verified host only. After a mistake of either side the connection ends; it never goes on half understood.
import type { Socket } from 'node:net';
import { AgsError } from '../protocol/errors.ts';
import { hostAndPort } from '../protocol/host-name.ts';
import { httpAnswer } from './answers.ts';
import { createBody } from './body.ts';
import { readHead, send } from './byte-source.ts';
import type { Authority } from './certificate.ts';
import { judge } from './judge.ts';
import { createRedactor } from './redact.ts';
import { readRequestHead, type RequestHead } from './request-head.ts';
import { expectsContinue, type LiveSecret, presentSecrets, type Rewritten, secretForms } from './request-rewrite.ts';
import { type Relayed, relayResponse } from './response-relay.ts';
import { closeGently, type Dialled, type End, openClient, openOrigin } from './secure-ends.ts';
import { tunnel } from './web-socket.ts';

export type { LiveSecret } from './request-rewrite.ts';

export interface InterceptInput {
  /** The sandbox's side, paused, made with `allowHalfOpen`. */
  readonly client: Socket;
  /** Bytes that were read from it already. */
  readonly first: Buffer;
  /** How the origin is spoken to. The client speaks TLS if there is an `authority`, and plain HTTP otherwise. */
  readonly upstream: 'https' | 'http';
  readonly host: string;
  readonly port: number;
  readonly authority: Authority | null;
  /** Trusted for the origin, in PEM. The same array for all connections: it is read once. */
  readonly roots: readonly string[];
  /** Opens the checked TCP connection to the origin. */
  dial(): Promise<Dialled>;
  /** Null: allowed; otherwise the sentence for the 403. Asked for every request, with a path in one spelling. */
  decide(method: string, path: string): string | null;
  readonly secrets: readonly LiveSecret[];
  /** Of an endpoint: what stands before the path and is taken off; otherwise ''. */
  readonly basePath: string;
  /** False: the budget is spent, and the connection ends. */
  count(direction: 'out' | 'in', bytes: number): boolean;
  onRequest(info: RequestInfo): void;
  /** Nothing is decided by the path, so it is sent as it was written. */
  readonly anyPath: boolean;
  /** A proxy's client may ask for another host next: the connection ends with the answer. */
  readonly single: boolean;
  /** How long a head may take to arrive; 30 s if not given. */
  readonly headMs?: number;
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
}

/** What became of one request; `kept`: the connection can carry another. */
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

/** Resolves when the connection is over; never rejects. */
export async function intercept(input: InterceptInput): Promise<void> {
  try {
    const client = openClient(input.client, input.first, input.authority, input.host);
    const line: Line = { input, client, origin: null };
    client.socket.once('close', () => line.origin?.socket.destroy());
    // Who has said all it wanted may still listen; who is gone is noticed when something is sent, or then.
    client.socket.once('end', () => client.socket.setTimeout(HALF_CLOSED_MS, () => client.socket.destroy()));
    for (let served = 0; await serveNext(line, served); served += 1);
    line.origin?.socket.destroy();
    await closeGently(client);
  } catch {
    // A mistake of ours ends this connection and no other.
  } finally {
    input.client.destroy();
  }
}

async function serveNext(line: Line, served: number): Promise<boolean> {
  const { input, client } = line;
  const result = await nextHead(line, served);
  if (result === null) return false;
  const started = performance.now();
  const tally: Tally = { out: 0, in: 0 };
  const tell = (method: string, path: string, { status, refused }: Outcome): void => {
    const ms = Math.round(performance.now() - started);
    input.onRequest({ method, path, status, refused, bytesOut: tally.out, bytesIn: tally.in, ms });
  };
  if (result.kind === 'bad') {
    tell('-', '-', await refuse(client, null, result.status, `ags refuses this request: ${result.problem}.`));
    return false;
  }
  const head = input.single ? { ...result.head, keepAlive: false } : result.head;
  const secrets = await presentSecrets(input.secrets).catch((error: unknown) => sentenceOf(error));
  if (typeof secrets === 'string') {
    tell(head.method, '-', await refuse(client, { ...head, keepAlive: false }, 401, secrets));
    return false;
  }
  const judged = judge({ ...input, secrets }, head);
  const outcome =
    'sentence' in judged
      ? await refuse(client, head, judged.status, judged.sentence)
      : await exchange(line, { head, tally, secrets, ...judged });
  tell(head.method, judged.path, outcome);
  return outcome.kept;
}

function sentenceOf(error: unknown): string {
  return `ags cannot sign this request in: ${error instanceof AgsError ? `${error.message} ${error.hint ?? ''}` : 'an error of its own.'}`;
}

async function nextHead(line: Line, served: number): ReturnType<typeof readHead<RequestHead>> {
  const limit = line.input.headMs ?? HEAD_MS;
  const giveUp = (): unknown => line.client.socket.destroy();
  let timer = setTimeout(giveUp, served === 0 ? limit : IDLE_MS);
  const result = await readHead(line.client.source, readRequestHead, () => {
    clearTimeout(timer);
    timer = setTimeout(giveUp, limit);
  });
  clearTimeout(timer);
  return result;
}

interface Exchange {
  readonly head: RequestHead;
  readonly secrets: readonly LiveSecret[];
  readonly tally: Tally;
  readonly request: Rewritten;
  readonly upgrade: boolean;
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
  // An origin may close a kept connection at any moment; then nothing of the request was looked at.
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

/** Both ways at a time: an answer may come before the request has been sent wholly. */
async function transfer(line: Line, origin: End, given: Exchange): Promise<{ relayed: Relayed; upload: Upload }> {
  const { input, client } = line;
  const { head, tally } = given;
  const { secrets } = given;
  const redactor = secrets.length === 0 ? null : createRedactor(secretForms(secrets, given.request.hide));
  const upload: Upload = { state: 'sending', problem: null };
  // Not awaited at once, so it may not reject; whatever goes wrong there ends the exchange.
  const uploading = sendRequest(line, origin, given, upload).catch(() => origin.socket.destroy());
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
  });
  if (relayed.kind === 'switched') await tunnel(client, origin, redactor, count);
  // Whoever was told the end before it sent its body may send it or not: nobody knows where the next request begins.
  if (relayed.kind === 'passed' && relayed.kept && upload.state === 'sending' && !expectsContinue(head)) {
    const giveUp = (): void => void client.socket.destroy();
    client.socket.setTimeout(HEAD_MS, giveUp);
    await uploading;
    client.socket.setTimeout(0, giveUp);
  }
  return { relayed, upload };
}

async function sendRequest(line: Line, origin: End, given: Exchange, upload: Upload): Promise<void> {
  const { input, client } = line;
  const body = createBody(given.head.body);
  const stop = (state: Upload['state'], problem: string | null = null): void => {
    upload.state = state;
    upload.problem = problem;
    // The response will not come, and whoever waits for it is told so by this.
    if (state !== 'sent') origin.socket.destroy();
  };
  let before: Buffer | null = given.request.bytes;
  let done = given.head.body.kind === 'none' || (given.head.body.kind === 'length' && given.head.body.bytes === 0);
  while (!done || before !== null) {
    let bytes = before ?? EMPTY;
    // Without its body's beginning at hand, the head goes alone: the client may wait for an answer to it.
    if (!done && (before === null || client.source.waiting)) {
      const chunk = await client.source.read();
      if (chunk === null) return stop('client gone');
      const taken = body.take(chunk);
      if ('bad' in taken) return stop('bad', taken.bad);
      client.source.unread(taken.rest);
      done = taken.done;
      bytes = before === null ? taken.used : Buffer.concat([before, taken.used]);
    }
    before = null;
    given.tally.out += bytes.length;
    if (!input.count('out', bytes.length)) return stop('spent');
    if (!(await send(origin.socket, bytes))) return stop('origin gone');
  }
  stop('sent');
}

const EMPTY = Buffer.alloc(0);

async function refuse(client: End, head: RequestHead | null, status: number, sentence: string): Promise<Outcome> {
  // A request that was not understood is the last one.
  const understood = head !== null && status !== 400 && status !== 421;
  const kept = understood && head.keepAlive && head.body.kind === 'none' && client.source.state === 'open';
  const text = httpAnswer(status, sentence, { kept, bare: head?.method === 'HEAD' });
  const sent = await send(client.socket, Buffer.from(text, 'latin1'));
  return { status, refused: sentence, kept: kept && sent };
}
