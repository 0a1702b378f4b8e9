// gateway/intercept/response-relay.ts: forwards one response of the origin to the client as it arrives.
// Invariant: a truncated response never ends regularly. If there are secrets, every byte is searched for them before it passes.
import { createBody, type Taken } from './body.ts';
import { readHead, type Source } from './byte-source.ts';
import { type Field, listOf } from './head.ts';
import type { Redactor } from './redact.ts';
import { firstOf } from './request-rewrite.ts';
import { readResponseHead, type ResponseHead } from './response-head.ts';

export interface Relay {
  readonly source: Source;
  readonly method: string;
  readonly version: '1.0' | '1.1';
  /** The client asked for a WebSocket. */
  readonly upgrade: boolean;
  /** The client's connection ends after this response. */
  readonly last: boolean;
  readonly redactor: Redactor | null;
  /** Writes to the client; false: it is gone. */
  write(bytes: Buffer): boolean | Promise<boolean>;
  /** False: the budget is spent. */
  count(bytes: number): boolean;
  /** The head of the final response. */
  onHead(head: ResponseHead): void;
  /** The next bytes of its body, without framing. */
  onData(data: Buffer): void;
}

export type Relayed =
  /** The whole response has passed; `kept`: both connections can serve another. */
  | { readonly kind: 'passed'; readonly status: number; readonly kept: boolean }
  | { readonly kind: 'switched'; readonly status: number }
  /** No byte of a final response has passed, so the client can still get another answer. */
  | { readonly kind: 'nothing'; readonly problem: string | null }
  /** The client has received a part. */
  | { readonly kind: 'broken'; readonly status: number };

export async function relayResponse(relay: Relay): Promise<Relayed> {
  for (;;) {
    const result = await readHead(relay.source, (bytes, seen) => readResponseHead(bytes, relay.method, seen));
    if (result === null) return { kind: 'nothing', problem: null };
    if (result.kind === 'bad') return { kind: 'nothing', problem: `its response is not understood: ${result.problem}` };
    const { head } = result;
    if (!relay.count(head.bytes)) return { kind: 'nothing', problem: 'too much' };
    if (head.status === 101) return switchOver(relay, head);
    if (head.status >= 200) return relayFinal(relay, head);
    if (relay.version === '1.1' && !(await relay.write(writeHead(relay, head, null)))) return gone;
  }
}

const gone: Relayed = { kind: 'broken', status: 0 };

async function switchOver(relay: Relay, head: ResponseHead): Promise<Relayed> {
  // After a switch to any other protocol, requests would pass without inspection.
  if (!relay.upgrade || firstOf(head.headers, 'upgrade')?.toLowerCase() !== 'websocket') {
    return { kind: 'nothing', problem: 'it switched to a protocol that was not asked for' };
  }
  await relay.write(writeHead(relay, head, 'Upgrade\r\nUpgrade: websocket'));
  return { kind: 'switched', status: 101 };
}

async function relayFinal(relay: Relay, head: ResponseHead): Promise<Relayed> {
  const { status } = head;
  if (relay.version === '1.0' && head.body.kind === 'chunked')
    return { kind: 'nothing', problem: 'it used chunks in HTTP/1.0' };
  const coding = firstOf(head.headers, 'content-encoding') ?? 'identity';
  if (relay.redactor !== null && head.body.kind !== 'none' && coding.toLowerCase() !== 'identity') {
    return { kind: 'nothing', problem: 'its response is compressed though it must not be, and could hide a secret' };
  }
  relay.onHead(head);
  const kept = head.keepAlive && !relay.last;
  const start = writeHead(relay, head, kept ? 'keep-alive' : 'close');
  if (head.body.kind === 'none' || (head.body.kind === 'length' && head.body.bytes === 0)) {
    const sent = relay.write(start);
    return (sent instanceof Promise ? await sent : sent)
      ? { kind: 'passed', status, kept }
      : { kind: 'broken', status };
  }
  return (await relayBody(relay, head, start)) ? { kind: 'passed', status, kept } : { kind: 'broken', status };
}

async function relayBody(relay: Relay, head: ResponseHead, start: Buffer): Promise<boolean> {
  const { source, redactor } = relay;
  const body = createBody(head.body);
  const chunked = head.body.kind === 'chunked';
  let before: Buffer | null = start;
  // Send the head at once if its body has not arrived.
  if (!source.waiting) {
    if (!(await relay.write(start))) return false;
    before = null;
  }
  for (;;) {
    const next = source.read();
    const chunk = next instanceof Promise ? await next : next;
    if (chunk === null) {
      if (head.body.kind !== 'until-close' || source.state !== 'ended') return false;
      return redactor === null ? true : relay.write(redactor.end());
    }
    const taken = body.take(chunk);
    if ('bad' in taken || !relay.count(taken.used.length)) return false;
    for (const data of taken.data) relay.onData(data);
    const piece = redactor === null ? taken.used : redact(redactor, taken, chunked);
    const sent = relay.write(before === null ? piece : Buffer.concat([before, piece]));
    if (!(sent instanceof Promise ? await sent : sent)) return false;
    before = null;
    if (!taken.done) continue;
    source.unread(taken.rest);
    return true;
  }
}

// A value may span chunks, so the data is searched without its framing and framed again; trailers are dropped.
function redact(redactor: Redactor, taken: Taken, chunked: boolean): Buffer {
  const passed = redactor.pass(taken.data.length === 1 ? (taken.data[0] ?? taken.used) : Buffer.concat(taken.data));
  const data = taken.done ? Buffer.concat([passed, redactor.end()]) : passed;
  if (!chunked) return data;
  const framed = data.length === 0 ? [] : [Buffer.from(`${data.length.toString(16)}\r\n`), data, Buffer.from('\r\n')];
  return Buffer.concat(taken.done ? [...framed, Buffer.from('0\r\n\r\n')] : framed);
}

/** `connection` is null for an interim response. */
function writeHead(relay: Relay, head: ResponseHead, connection: string | null): Buffer {
  const named = listOf(head.headers, 'connection');
  let text = `HTTP/1.1 ${head.status} ${head.reason}\r\n`;
  for (const [name, value] of head.headers) if (passes(name, named)) text += `${name}: ${value}\r\n`;
  if (connection !== null) text += `Connection: ${connection}\r\n`;
  const bytes = Buffer.from(`${text}\r\n`, 'latin1');
  return relay.redactor === null ? bytes : Buffer.concat([relay.redactor.pass(bytes), relay.redactor.end()]);
}

// Alt-Svc would send the client to another port or to QUIC.
const HOP: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'upgrade',
  'alt-svc',
  'proxy-connection',
  'proxy-authenticate',
]);
/** Framing fields pass even if `Connection` names them. */
const FRAMING: readonly string[] = ['content-length', 'transfer-encoding'];

/** `named`: the fields that `Connection` names. */
function passes(name: Field[0], named: readonly string[]): boolean {
  const lower = name.toLowerCase();
  return FRAMING.includes(lower) || (!HOP.has(lower) && !named.includes(lower));
}
