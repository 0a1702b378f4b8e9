// gateway/front/client-hello.ts: reads the server name from the first message of a TLS client, before any byte is answered.
// Invariant: bounded and exact. A message with trailing bytes, a repeated extension or more than one name is bad.

export type ClientHello =
  | { readonly kind: 'more' }
  | { readonly kind: 'bad'; readonly problem: string }
  | {
      readonly kind: 'hello';
      /** As sent, in printable ASCII. The caller compares it with the host. */
      readonly serverName: string | null;
      /** The encrypted part may hold another name. */
      readonly ech: boolean;
      readonly alpn: readonly string[];
    };

type Extensions = Omit<Extract<ClientHello, { kind: 'hello' }>, 'kind'>;

const MAX_BYTES = 65_536;
const MAX_RECORDS = 64;
const SERVER_NAME = 0;
const ALPN = 16;
/** Encrypted ClientHello, and its forerunner, encrypted SNI. */
const HIDING: readonly number[] = [0xfe0d, 0xffce];

/** May be called again with more bytes. */
export function readClientHello(bytes: Buffer): ClientHello {
  const message = joinRecords(bytes);
  if (!Buffer.isBuffer(message)) return message;
  const hello = parseHello(message);
  return typeof hello === 'string' ? { kind: 'bad', problem: hello } : { kind: 'hello', ...hello };
}

/** The handshake message, joined from its records. */
function joinRecords(bytes: Buffer): Buffer | Exclude<ClientHello, { kind: 'hello' }> {
  const parts: Buffer[] = [];
  let gathered = 0;
  let at = 0;
  while (at < bytes.length) {
    if (bytes[at] !== 22) return notTls;
    if (at + 1 < bytes.length && bytes[at + 1] !== 3) return notTls;
    if (at + 5 > bytes.length) break;
    const length = bytes.readUInt16BE(at + 3);
    if (length === 0 || length > 16_384) return { kind: 'bad', problem: 'a record of TLS has no proper length' };
    if (parts.length === MAX_RECORDS) return { kind: 'bad', problem: 'the greeting of TLS lies in too many records' };
    const part = bytes.subarray(at + 5, at + 5 + length);
    if (gathered === 0 && part.length > 0 && part[0] !== 1) return notTls;
    parts.push(part);
    gathered += part.length;
    at += 5 + length;
    const needed = neededBytes(parts);
    if (needed !== null && needed > MAX_BYTES) return tooLong;
    if (needed === null || gathered < needed) continue;
    if (gathered > needed) return { kind: 'bad', problem: 'the greeting of TLS has something after it' };
    // An incomplete record may hold more than the message, so wait for its last bytes.
    if (at > bytes.length) return { kind: 'more' };
    return Buffer.concat(parts);
  }
  return bytes.length > MAX_BYTES ? tooLong : { kind: 'more' };
}

const notTls = { kind: 'bad', problem: 'it does not begin as TLS does' } as const;
const tooLong = { kind: 'bad', problem: 'the greeting of TLS is too long' } as const;

/** The message length including its header of four bytes; null: not known yet. */
function neededBytes(parts: readonly Buffer[]): number | null {
  const head = Buffer.concat(parts.slice(0, 4)).subarray(0, 4);
  return head.length < 4 ? null : 4 + head.readUIntBE(1, 3);
}

function parseHello(message: Buffer): Extensions | string {
  const cut = 'the greeting of TLS is cut short';
  // Message head 4, version 2, random 32.
  let at = 38;
  for (const width of [1, 2, 1]) {
    if (at + width > message.length) return cut;
    at += width + message.readUIntBE(at, width);
  }
  if (at > message.length) return cut;
  if (at === message.length) return { serverName: null, ech: false, alpn: [] };
  if (at + 2 > message.length || at + 2 + message.readUInt16BE(at) !== message.length) return cut;
  return parseExtensions(message.subarray(at + 2));
}

function parseExtensions(bytes: Buffer): Extensions | string {
  const seen = new Set<number>();
  let serverName: string | null = null;
  let alpn: readonly string[] = [];
  let at = 0;
  while (at < bytes.length) {
    if (at + 4 > bytes.length) return 'an extension of TLS is cut short';
    const type = bytes.readUInt16BE(at);
    const end = at + 4 + bytes.readUInt16BE(at + 2);
    if (end > bytes.length) return 'an extension of TLS is cut short';
    if (seen.has(type)) return 'an extension of TLS stands there twice';
    seen.add(type);
    const content = bytes.subarray(at + 4, end);
    if (type === SERVER_NAME) {
      serverName = parseServerName(content);
      if (serverName === null) return 'the server name in TLS is not one name';
    } else if (type === ALPN) {
      const names = parseAlpn(content);
      if (names === null) return 'the list of protocols in TLS is broken';
      alpn = names;
    }
    at = end;
  }
  return { serverName, ech: HIDING.some((type) => seen.has(type)), alpn };
}

// The list may hold one element: type 0 (a host name), two bytes of length, the name.
function parseServerName(content: Buffer): string | null {
  if (content.length < 6 || content.readUInt16BE(0) !== content.length - 2) return null;
  if (content[2] !== 0 || content.readUInt16BE(3) !== content.length - 5) return null;
  const name = content.toString('latin1', 5);
  return /^[\x21-\x7e]+$/.test(name) ? name : null;
}

function parseAlpn(content: Buffer): string[] | null {
  if (content.length < 2 || content.readUInt16BE(0) !== content.length - 2) return null;
  const names: string[] = [];
  let at = 2;
  while (at < content.length) {
    const end = at + 1 + (content[at] ?? 0);
    if (end === at + 1 || end > content.length) return null;
    names.push(content.toString('latin1', at + 1, end));
    at = end;
  }
  return names;
}
