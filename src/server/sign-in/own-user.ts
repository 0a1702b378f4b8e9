// server/sign-in/own-user.ts: whose program is at the other end of a connection on this machine: the kernel knows.
// A link that works once can be read by every user of the machine while it is on the command line of a browser; it is of use to one alone.
import { readFileSync } from 'node:fs';
import type { Socket } from 'node:net';

/** Of the user we run as, or root, who can read our files anyway. Root's own server is for the users of its machine. */
export function isOwnUser({ remoteAddress = '', remotePort = 0, localAddress = '', localPort = 0 }: Socket): boolean {
  const own = process.geteuid?.() ?? 0;
  if (own === 0) return true;
  const [from, to] = [spellings(remoteAddress, remotePort), spellings(localAddress, localPort)];
  const uids = ['/proc/net/tcp', '/proc/net/tcp6']
    .flatMap((file) => readFileSync(file, 'latin1').split('\n'))
    .map((line) => line.trim().split(/\s+/))
    // Theirs: it begins where ours ends.
    .filter(([, begin = '', end = '']) => from.includes(begin) && to.includes(end))
    .map((words) => Number(words[7]));
  return uids.length > 0 && uids.every((uid) => uid === own || uid === 0);
}

/** As the kernel writes an address: words of four bytes, the last one first. */
function spellings(address: string, port: number): string[] {
  const at = port.toString(16).toUpperCase().padStart(4, '0');
  if (address === '::1') return [`${'0'.repeat(24)}01000000:${at}`];
  const bytes = address.replace('::ffff:', '').split('.').map(Number);
  const word = Buffer.from(bytes.toReversed()).toString('hex').toUpperCase();
  return [`${word}:${at}`, `${'0'.repeat(16)}FFFF0000${word}:${at}`];
}
