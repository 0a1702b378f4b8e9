// sandbox/watch/connection-owner.ts: which program inside a sandbox holds a connection, in words for people.
// Invariant: it never fails and never takes long, whatever the sandbox is made of; the answer is what the sandbox says of
// itself, so nothing may be decided by it.
import { open, readdir, readFile, readlink } from 'node:fs/promises';
import { basename } from 'node:path';
import { visible } from '../../lib/sanitize.ts';

/** A sandbox may have more, but nobody waits that long for a name. */
const MOST_PROCESSES = 2000;
const MOST_DESCRIPTORS = 20_000;
const MOST_MS = 2000;
const MOST_CHARACTERS = 80;
/** Looked at together: the thread pool has few threads, and others wait for it too. */
const AT_ONCE = 16;

/** `peerPort` is the port at the sandbox's end of a connection. Undefined: it has ended, or cannot be found in time. */
export async function findAsker(initPid: number, peerPort: number): Promise<string | undefined> {
  const socket = await findSocket(initPid, peerPort);
  if (socket === undefined) return undefined;
  const begun = process.uptime();
  const left = { descriptors: MOST_DESCRIPTORS };
  const waiting = [initPid];
  for (let seen = 0; seen < MOST_PROCESSES && left.descriptors > 0; seen++) {
    // Who has just begun is likelier to ask than who began it.
    const pid = waiting.pop();
    if (pid === undefined || (process.uptime() - begun) * 1000 > MOST_MS) return undefined;
    if (await holds(pid, `socket:[${socket}]`, left)) return describe(pid);
    waiting.push(...(await childrenOf(pid)).slice(-MOST_PROCESSES));
  }
  return undefined;
}

/** Its inode. A program that speaks IPv6 has its connections to IPv4 addresses in the other list. */
async function findSocket(initPid: number, port: number): Promise<string | undefined> {
  const ending = `:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  for (const list of ['tcp', 'tcp6'])
    for (const line of (await read(`/proc/${initPid}/net/${list}`)).split('\n')) {
      if (!line.includes(ending)) continue;
      const fields = line.trim().split(/\s+/);
      // Our own end of the connection is in the list as well, the other way round.
      if (fields[1]?.endsWith(ending) === true && fields[3] !== LISTENS && fields[9] !== '0') return fields[9];
    }
  return undefined;
}

const LISTENS = '0A';

async function holds(pid: number, socket: string, left: { descriptors: number }): Promise<boolean> {
  const directory = `/proc/${pid}/fd`;
  const names = (await quietly(readdir(directory), [])).slice(0, left.descriptors);
  left.descriptors -= names.length;
  for (let at = 0; at < names.length; at += AT_ONCE) {
    const some = names.slice(at, at + AT_ONCE).map((name) => quietly(readlink(`${directory}/${name}`), ''));
    if ((await Promise.all(some)).includes(socket)) return true;
  }
  return false;
}

async function childrenOf(pid: number): Promise<number[]> {
  const children: number[] = [];
  for (const thread of (await quietly(readdir(`/proc/${pid}/task`), [])).slice(0, MOST_PROCESSES))
    for (const child of (await read(`/proc/${pid}/task/${thread}/children`)).split(' '))
      if (child !== '') children.push(Number(child));
  return children;
}

/** "node build.js": the program, and what it was told first, unless that is an option or could hold a secret. */
async function describe(pid: number): Promise<string | undefined> {
  const path = (await quietly(readlink(`/proc/${pid}/exe`), '')).replace(/ \(deleted\)$/, '');
  if (path === '') return undefined;
  const [, first = ''] = (await readStart(`/proc/${pid}/cmdline`)).split('\0');
  const told = /^-|:\/\/|[@=\s]/.test(first) ? '' : basename(first);
  const words = visible(told === '' ? basename(path) : `${basename(path)} ${told}`);
  return [...words].slice(0, MOST_CHARACTERS).join('');
}

/** A command line can be megabytes long. */
async function readStart(path: string): Promise<string> {
  const buffer = Buffer.alloc(4096);
  const file = await quietly(open(path), null);
  if (file === null) return '';
  try {
    const { bytesRead } = await quietly(file.read(buffer, 0, buffer.length, 0), { bytesRead: 0 });
    return buffer.toString('utf8', 0, bytesRead);
  } finally {
    await quietly(file.close(), undefined);
  }
}

const read = (path: string): Promise<string> => quietly(readFile(path, 'latin1'), '');

/** Processes end while one looks at them. */
function quietly<T, U>(looking: Promise<T>, otherwise: U): Promise<T | U> {
  return looking.catch(() => otherwise);
}
