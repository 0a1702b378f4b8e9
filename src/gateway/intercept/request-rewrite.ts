// gateway/intercept/request-rewrite.ts: builds the request to the origin from the parsed request of the client.
// Invariant: ags always writes framing and host itself. A secret goes into its own header and nowhere else.
import { type Field, listOf, valuesOf } from './head.ts';
import type { RequestHead } from './request-head.ts';

export interface LiveSecret {
  readonly name: string;
  /** Lower case. */
  readonly header: string;
  readonly value: string;
  /** For a secret that expires: called before every request, in place of `value`. Rejects with a sentence for the client. */
  readonly renew?: () => Promise<string>;
  readonly placeholder: string;
  /** The whole header with `{}` for the value, set on every request; null: only the placeholder is replaced. */
  readonly send: string | null;
}

export interface Rewritten {
  readonly bytes: Buffer;
  /** Forms in which the response could contain a secret. */
  readonly hide: readonly string[];
}

export function rewriteRequest(
  head: RequestHead,
  to: { target: string; host: string; secrets: readonly LiveSecret[]; upgrade: boolean },
): Rewritten {
  const named = listOf(head.headers, 'connection');
  const hidden = to.secrets.length > 0 ? UNREADABLE : [];
  let fields: readonly Field[] = head.headers.filter(([name]) => {
    const lower = name.toLowerCase();
    return !OURS.has(lower) && !named.includes(lower) && !hidden.includes(lower) && !lower.startsWith('proxy-');
  });
  const hide: string[] = [];
  for (const secret of to.secrets) fields = putIn(fields, secret, hide);
  let text = `${head.method} ${to.target} HTTP/${head.version}\r\nHost: ${to.host}\r\n`;
  for (const [name, value] of fields) text += `${name}: ${value}\r\n`;
  if (head.body.kind === 'length') text += `Content-Length: ${head.body.bytes}\r\n`;
  if (head.body.kind === 'chunked') text += 'Transfer-Encoding: chunked\r\n';
  if (to.secrets.length > 0) text += 'Accept-Encoding: identity\r\n';
  if (expectsContinue(head)) text += 'Expect: 100-continue\r\n';
  text += to.upgrade ? 'Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n' : 'Connection: keep-alive\r\n\r\n';
  return { bytes: Buffer.from(text, 'latin1'), hide };
}

/** Written by ags, or valid for one hop only. */
const OURS: ReadonlySet<string> = new Set([
  'host',
  'content-length',
  'transfer-encoding',
  'connection',
  'keep-alive',
  'upgrade',
  'http2-settings',
  'te',
  'expect',
]);

/** These would permit a compressed response, in which a secret could not be found. */
const UNREADABLE: readonly string[] = ['accept-encoding', 'sec-websocket-extensions'];

export function expectsContinue(head: RequestHead): boolean {
  return head.version === '1.1' && head.body.kind !== 'none' && listOf(head.headers, 'expect').includes('100-continue');
}

function putIn(fields: readonly Field[], secret: LiveSecret, hide: string[]): Field[] {
  const { header, send } = secret;
  if (send !== null) {
    const others = fields.filter(([name]) => name.toLowerCase() !== header);
    return [...others, [header, send.replaceAll('{}', () => secret.value)]];
  }
  return fields.map((field) =>
    field[0].toLowerCase() === header ? [field[0], fillIn(field[1], secret, hide)] : field,
  );
}

function fillIn(value: string, secret: LiveSecret, hide: string[]): string {
  const plain = value.replaceAll(secret.placeholder, () => secret.value);
  if (plain !== value) return plain;
  const [, scheme = '', encoded = ''] = /^(basic +)([A-Za-z0-9+/]+={0,2})$/i.exec(value) ?? [];
  if (encoded === '') return value;
  const pair = Buffer.from(encoded, 'base64').toString('latin1');
  const filled = pair.replaceAll(secret.placeholder, () => secret.value);
  if (filled === pair) return value;
  const written = Buffer.from(filled, 'latin1').toString('base64');
  hide.push(written.replace(/=+$/, ''));
  return scheme + written;
}

/** Resolves with current values. Rejects if a `renew` rejects. */
export async function presentSecrets(secrets: readonly LiveSecret[]): Promise<readonly LiveSecret[]> {
  return Promise.all(
    secrets.map(async (secret) => (secret.renew === undefined ? secret : { ...secret, value: await secret.renew() })),
  );
}

/** Why a secret cannot be put into a header; null: all can. A line break would start another header. */
export function secretProblem(secrets: readonly LiveSecret[]): string | null {
  // eslint-disable-next-line no-control-regex
  const wrong = secrets.find(({ value }) => value === '' || !/^[\t\x20-\x7e\x80-\xff]*$/.test(value));
  return wrong === undefined ? null : `the secret ${wrong.name} is empty or has a character that no header may have`;
}

/** The forms in which a program would return a value. */
export function secretForms(secrets: readonly LiveSecret[], more: readonly string[]): Buffer[] {
  const texts = new Set(more);
  for (const { value } of secrets) {
    texts.add(value).add(JSON.stringify(value).slice(1, -1)).add(encodeURIComponent(value));
  }
  const forms = new Map<string, Buffer>();
  for (const text of texts) {
    for (const encoding of ['latin1', 'utf8'] as const) {
      const bytes = Buffer.from(text, encoding);
      forms.set(bytes.toString('latin1'), bytes);
    }
  }
  return [...forms.values()];
}

/** The first value of a field; null: none. */
export function firstOf(fields: readonly Field[], lowerCaseName: string): string | null {
  return valuesOf(fields, lowerCaseName)[0] ?? null;
}
