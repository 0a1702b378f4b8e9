// sandbox/watch/connection-owner.ts: names the program inside a sandbox that owns a connection, for people to read.
// Invariant: the search never fails and never takes long. The answer comes from the sandbox itself, so no decision may depend on it.
import { open, readdir, readFile, readlink } from 'node:fs/promises';
import { basename } from 'node:path';
import { visible } from '../../lib/sanitize.ts';

/** A sandbox may have more processes, but a name is not worth a longer search. */
const MOST_PROCESSES = 2000;
const MOST_DESCRIPTORS = 20_000;
const MOST_MS = 2000;
const MOST_CHARACTERS = 80;
/** Links read in parallel: the thread pool is small and shared. */
const AT_ONCE = 16;

/** `peerPort` is the sandbox's port of the connection. Undefined: the connection has ended, or its owner was not found in time. */
export async function findAsker(initPid: number, peerPort: number): Promise<string | undefined> {
  const socket = await findSocket(initPid, peerPort);
  if (socket === undefined) return undefined;
  const begun = process.uptime();
  const left = { descriptors: MOST_DESCRIPTORS };
  const waiting = [initPid];
  for (let seen = 0; seen < MOST_PROCESSES && left.descriptors > 0; seen++) {
    // The newest process is the likeliest owner.
    const pid = waiting.pop();
    if (pid === undefined || (process.uptime() - begun) * 1000 > MOST_MS) return undefined;
    if (await holds(pid, `socket:[${socket}]`, left)) return describe(pid);
    waiting.push(...(await childrenOf(pid)).slice(-MOST_PROCESSES));
  }
  return undefined;
}

/** Returns the socket's inode. An IPv6 program has its connections to IPv4 addresses in the other list. */
async function findSocket(initPid: number, port: number): Promise<string | undefined> {
  const ending = `:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  for (const list of ['tcp', 'tcp6'])
    for (const line of (await read(`/proc/${initPid}/net/${list}`)).split('\n')) {
      if (!line.includes(ending)) continue;
      const fields = line.trim().split(/\s+/);
      // Our own end of the connection is in the list as well, with local and remote swapped.
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

/** "node build.js": the program and its first argument, unless that is an option or could contain a secret. */
async function describe(pid: number): Promise<string | undefined> {
  const path = (await quietly(readlink(`/proc/${pid}/exe`), '')).replace(/ \(deleted\)$/, '');
  if (path === '') return undefined;
  const [, first = ''] = (await readStart(`/proc/${pid}/cmdline`)).split('\0');
  const argument = /^-|:\/\/|[@=\s]/.test(first) ? '' : basename(first);
  const words = visible(argument === '' ? basename(path) : `${basename(path)} ${argument}`);
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

/** Processes may end while they are being read. */
function quietly<T, U>(looking: Promise<T>, otherwise: U): Promise<T | U> {
  return looking.catch(() => otherwise);
}
