// gateway/front/socks5.ts: parses what a SOCKS5 client sends (RFC 1928). Pure.
// Invariant: only CONNECT; only names and addresses that protocol/host-name accepts.
import { canonicalHost, type HostName } from '../../protocol/host-name.ts';

export type Greeting =
  | { kind: 'more' }
  | { kind: 'bad' }
  | { kind: 'greeting'; bytes: number; withoutPassword: boolean; withPassword: boolean };

export function readGreeting(bytes: Buffer): Greeting {
  const count = bytes[1];
  if (bytes[0] !== 5) return { kind: 'bad' };
  if (count === undefined || bytes.length < 2 + count) return { kind: 'more' };
  const methods = bytes.subarray(2, 2 + count);
  return {
    kind: 'greeting',
    bytes: 2 + count,
    withoutPassword: methods.includes(0),
    withPassword: methods.includes(2),
  };
}

/** RFC 1929. */
export function readPassword(
  bytes: Buffer,
): { kind: 'more' } | { kind: 'bad' } | { kind: 'password'; bytes: number; password: string } {
  if (bytes.length > 0 && bytes[0] !== 1) return { kind: 'bad' };
  const userEnd = 2 + (bytes[1] ?? 0);
  const end = userEnd + 1 + (bytes[userEnd] ?? 0);
  if (bytes.length < userEnd + 1 || bytes.length < end) return { kind: 'more' };
  return { kind: 'password', bytes: end, password: bytes.toString('utf8', userEnd + 1, end) };
}

export type SocksRequest =
  | { kind: 'more' }
  | { kind: 'bad'; reply: number }
  | { kind: 'request'; bytes: number; host: HostName; port: number };

const CONNECT = 1;
export const SOCKS = {
  noPasswordNeeded: Buffer.from([5, 0]),
  passwordNeeded: Buffer.from([5, 2]),
  passwordGood: Buffer.from([1, 0]),
  passwordBad: Buffer.from([1, 1]),
  noMethod: Buffer.from([5, 0xff]),
  granted: 0,
  notAllowed: 2,
  unreachable: 4,
  commandUnknown: 7,
  addressUnknown: 8,
} as const;

export function readSocksRequest(bytes: Buffer): SocksRequest {
  if (bytes.length < 5) return { kind: 'more' };
  if (bytes[0] !== 5 || bytes[2] !== 0) return { kind: 'bad', reply: SOCKS.commandUnknown };
  if (bytes[1] !== CONNECT) return { kind: 'bad', reply: SOCKS.commandUnknown };
  const [start, length] = addressPlace(bytes);
  if (length === 0) return { kind: 'bad', reply: SOCKS.addressUnknown };
  if (bytes.length < start + length + 2) return { kind: 'more' };
  const host = readAddress(bytes.subarray(start, start + length), bytes[3] ?? 0);
  const port = bytes.readUInt16BE(start + length);
  if (host === null || port === 0) return { kind: 'bad', reply: SOCKS.addressUnknown };
  return { kind: 'request', bytes: start + length + 2, host, port };
}

export function socksReply(code: number): Buffer {
  return Buffer.from([5, code, 0, 1, 0, 0, 0, 0, 0, 0]);
}

function addressPlace(bytes: Buffer): [start: number, length: number] {
  switch (bytes[3] ?? 0) {
    case 1:
      return [4, 4];
    case 3:
      return [5, bytes[4] ?? 0];
    case 4:
      return [4, 16];
    default:
      return [4, 0];
  }
}

function readAddress(bytes: Buffer, type: number): HostName | null {
  switch (type) {
    case 1:
      return canonicalHost([...bytes].join('.'));
    case 3:
      // Host names are ASCII.
      return bytes.every((byte) => byte > 0x20 && byte < 0x7f) ? canonicalHost(bytes.toString('latin1')) : null;
    default:
      return canonicalHost(`[${(bytes.toString('hex').match(/.{4}/g) ?? []).join(':')}]`);
  }
}
