// server/sign-in/own-user.ts: asks the kernel which user owns the other end of a local connection.
// Every user of the machine can read a sign-in link on the command line of a browser; this check makes it useless to other users.
import { readFileSync } from 'node:fs';
import type { Socket } from 'node:net';

/** True for our own user, and for root, who can read our files anyway. A server that runs as root accepts every local user. */
export function isOwnUser({ remoteAddress = '', remotePort = 0, localAddress = '', localPort = 0 }: Socket): boolean {
  const own = process.geteuid?.() ?? 0;
  if (own === 0) return true;
  const [from, to] = [spellings(remoteAddress, remotePort), spellings(localAddress, localPort)];
  const uids = ['/proc/net/tcp', '/proc/net/tcp6']
    .flatMap((file) => readFileSync(file, 'latin1').split('\n'))
    .map((line) => line.trim().split(/\s+/))
    // The client's socket: its local address is our remote address.
    .filter(([, begin = '', end = '']) => from.includes(begin) && to.includes(end))
    .map((words) => Number(words[7]));
  return uids.length > 0 && uids.every((uid) => uid === own || uid === 0);
}

/** An address in the notation of /proc/net/tcp: four-byte words in reversed byte order. */
function spellings(address: string, port: number): string[] {
  const at = port.toString(16).toUpperCase().padStart(4, '0');
  if (address === '::1') return [`${'0'.repeat(24)}01000000:${at}`];
  const bytes = address.replace('::ffff:', '').split('.').map(Number);
  const word = Buffer.from(bytes.toReversed()).toString('hex').toUpperCase();
  return [`${word}:${at}`, `${'0'.repeat(16)}FFFF0000${word}:${at}`];
}
