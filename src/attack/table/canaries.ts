// attack/table/canaries.ts: targets outside the sandbox: servers, memory, a process and files, each of which notices when it is touched.
// Invariant: every secret contains the same random word, so that one search of all output shows whether any of them leaked.
import { spawn, type ChildProcess } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { lstatSync, readdirSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs';
import { hostname, networkInterfaces } from 'node:os';
import { join } from 'node:path';
import { perlProgram } from '../../lib/perl.ts';
import type { Places } from './attack.ts';

type Found = Pick<
  Places,
  | 'STREAMS'
  | 'DATAGRAMS'
  | 'ABSTRACT'
  | 'LOOPBACK_PORT'
  | 'ANY_PORT'
  | 'ADDRESSES'
  | 'IPC_KEY'
  | 'QUEUE'
  | 'VICTIM'
  | 'HOSTNAME'
>;

export interface Canaries extends AsyncDisposable {
  readonly places: Found;
  /** A sentence for everything that reached the servers and the process since the start. */
  noticed(): string[];
}

export function secretWord(): string {
  return `CANARY-${randomBytes(8).toString('hex')}`;
}

/** An ordinary project: tracked files, and untracked ones that must stay private. */
export const TRACKED: readonly string[] = ['.aws/config', '.ssh/known_hosts', 'sub/file.txt', 'node_modules/pkg.txt'];
export const UNTRACKED_SECRETS: readonly string[] = [
  '.env',
  '.env.local',
  'config/server.pem',
  '.npmrc',
  '.netrc',
  'deploy/id_rsa',
  'terraform.tfstate',
  '.kube/config',
  '.docker/config.json',
  '.aws/credentials',
  '.ssh/id_ed25519',
];

/** Variables of a caller with much to lose. */
export function careless(word: string, sockets: readonly string[], port: string): Record<string, string> {
  return {
    SECRET_TOKEN: word,
    GITHUB_TOKEN: word,
    AWS_SECRET_ACCESS_KEY: word,
    SSH_AUTH_SOCK: sockets[0] ?? '',
    DBUS_SESSION_BUS_ADDRESS: `unix:path=${sockets[1]}`,
    HTTPS_PROXY: `http://${word}@127.0.0.1:${port}`,
  };
}

/**
 * `uid`: the user of the sandbox, where possible: then only the sandbox protects the process. `outside`: a directory of ours. `streams`:
 * paths of sockets. `toolDir`: a tool directory, which gets sockets and a pipe as well.
 */
export async function openCanaries(input: {
  word: string;
  uid: number;
  outside: string;
  streams: readonly string[];
  toolDir: string;
}): Promise<Canaries> {
  const { word, uid, outside, toolDir } = input;
  const streams = [...input.streams, join(toolDir, 'agent.sock')];
  const datagrams = streams.map((path) => path.replace(/\.sock$/, '.dgram'));
  const name = `ags-${word}`;
  const key = String(randomBytes(4).readUInt32LE() & 0x7fffffff);
  const log = join(outside, 'log');
  writeFileSync(log, '');
  const given = [String(uid), log, join(toolDir, 'agent.fifo'), word, name, key, name, process.arch];
  const server = spawn(
    'perl',
    ['-e', perlProgram('attack/perl/canaries.pl'), ...given, ...streams, '--', ...datagrams],
    {
      stdio: ['pipe', 'pipe', 'inherit'],
    },
  );
  const [loopback = '', any = ''] = await firstLine(server);
  const shown = (paths: readonly string[]): string => paths.filter((path) => !path.startsWith(`${toolDir}/`)).join(' ');
  return {
    places: {
      STREAMS: shown(streams),
      DATAGRAMS: shown(datagrams),
      ABSTRACT: name,
      LOOPBACK_PORT: loopback,
      ANY_PORT: any,
      ADDRESSES: Object.values(networkInterfaces())
        .flatMap((list) => list ?? [])
        .filter((one) => one.family === 'IPv4' && !one.internal)
        .map((one) => one.address)
        .join(' '),
      IPC_KEY: key,
      QUEUE: name,
      VICTIM: String(server.pid),
      HOSTNAME: hostname(),
    },
    noticed: () => [
      ...readFileSync(log, 'utf8')
        .split('\n')
        .filter((line) => line !== ''),
      ...(server.exitCode === null && server.signalCode === null ? [] : ['the victim is dead']),
    ],
    async [Symbol.asyncDispose]() {
      server.stdin?.end();
      if (server.exitCode === null && server.signalCode === null)
        await new Promise((resolve) => server.on('exit', resolve));
    },
  };
}

/** The state of every file below these paths, except those left out. */
export function snapshot(places: readonly string[], leftOut: readonly string[]): Map<string, string> {
  const found = new Map<string, string>();
  const visit = (dir: string): void => {
    for (const entry of readdirSync(dir, { withFileTypes: true })) {
      const path = join(dir, entry.name);
      if (leftOut.includes(path)) continue;
      const stats = lstatSync(path, { bigint: true });
      const content = entry.isFile()
        ? createHash('sha256').update(readFileSync(path)).digest('hex').slice(0, 12)
        : entry.isSymbolicLink()
          ? readlinkSync(path)
          : '';
      const own = entry.isDirectory() ? [] : [stats.nlink, stats.ctimeNs];
      found.set(path, [stats.mode.toString(8), stats.uid, ...own, content].join(' '));
      if (entry.isDirectory()) visit(path);
    }
  };
  for (const dir of places) visit(dir);
  return found;
}

/** A sentence for every difference. */
export function difference(before: ReadonlyMap<string, string>, after: ReadonlyMap<string, string>): string[] {
  return [...new Set([...before.keys(), ...after.keys()])]
    .filter((path) => before.get(path) !== after.get(path))
    .map((path) => `${path}: ${before.get(path) ?? 'not there'} -> ${after.get(path) ?? 'gone'}`);
}

function firstLine(child: ChildProcess): Promise<string[]> {
  return new Promise((resolve, reject) => {
    let text = '';
    child.on('error', reject);
    child.on('exit', () => reject(new Error('what was to be attacked did not start')));
    child.stdout?.on('data', (chunk: Buffer) => {
      text += chunk.toString('utf8');
      if (text.includes('\n')) resolve(text.trim().split(' '));
    });
  });
}
