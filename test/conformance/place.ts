// test/conformance/place.ts: a fixture that starts sandboxes: a project, writable directories and a spec over them.
// It uses only SandboxSpec, Backend and Sandbox, so it works with every backend.
import { execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  chmodSync,
  chownSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { directoryIdentity } from '../../src/lib/files.ts';
import {
  HOST_ROOT,
  hostPath,
  sandboxPath,
  type Limits,
  type Mount,
  type SandboxSpec,
} from '../../src/protocol/spec.ts';
import type { Backend, OnListener, Sandbox, Stdio } from '../../src/sandbox/backend.ts';
import { readMachine } from '../../src/sandbox/spec/machine.ts';
import { processesWith, readProc } from '../attacks/host-view.ts';
import type { Caller } from '../harness.ts';

export const CALLER: Caller = process.getuid?.() === 0 ? 'root' : 'user';

/** Sandboxes of root run as a separate user; those of an ordinary user as that user. */
export const USER =
  CALLER === 'root'
    ? { uid: 7001, gid: 7002, name: 'agent' }
    : { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0, name: 'agent' };

/** Variables of a runner process that starts a sandbox with `word` on its command line, writes its pid into `directory`, and waits to be killed. */
export const RUNNER = { word: 'AGS_CONFORMANCE_WORD', directory: 'AGS_CONFORMANCE_DIRECTORY' } as const;

export interface Open {
  (directory: string, caller: Caller): Promise<Backend>;
  /** The parent of the fixture's directory: an engine may not see the /tmp of the tests. */
  readonly base?: string;
  /** Names that the engine itself adds to every container, in / and in /etc. */
  readonly own?: { readonly root: readonly string[]; readonly etc: readonly string[] };
}

export interface Outcome {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface RunInput {
  readonly spec?: SandboxSpec;
  readonly input?: Buffer | string;
  readonly onListener?: OnListener;
}

export interface Place extends Disposable {
  readonly root: string;
  /** The directory the backend was opened with; it contains `upper` and `work`. */
  readonly directory: string;
  readonly project: string;
  readonly backend: Backend;
  /** The minimum that programs need, with `more` mounted after it. */
  spec(more?: readonly Mount[], changes?: Partial<SandboxSpec>): SandboxSpec;
  /** Makes a directory below `directory` that the sandbox's user can write. */
  writable(name: string): string;
  /** Writes a file of the project, owned by the caller. */
  write(path: string, content: string | Buffer, mode?: number): void;
  start(
    command: readonly string[],
    options?: { spec?: SandboxSpec; stdio?: Partial<Stdio>; onListener?: OnListener | undefined },
  ): Promise<Sandbox>;
  run(command: readonly string[], options?: RunInput): Promise<Outcome>;
  /** run() with raw bytes. */
  runRaw(command: readonly string[], options?: RunInput): Promise<{ code: number; stdout: Buffer; stderr: Buffer }>;
}

const MiB = 1024 * 1024;
export const LIMITS: Limits = {
  processes: 200,
  memoryBytes: 1024 * MiB,
  openFiles: 1024,
  fileBytes: 256 * MiB,
  diskBytes: 1024 * MiB,
  tmpBytes: 64 * MiB,
  cpuSeconds: null,
  wallSeconds: null,
  cpus: null,
};

export async function createPlace(open: Open): Promise<Place> {
  const root = mkdtempSync(join(process.env[RUNNER.directory] ?? open.base ?? '/tmp', 'ags-conformance-'));
  chmodSync(root, 0o755);
  const directory = join(root, 'run');
  const project = join(root, 'project');
  for (const dir of [directory, project]) mkdirSync(dir);
  const backend = await open(directory, CALLER);
  const started: Sandbox[] = [];
  const place: Place = {
    root,
    directory,
    project,
    backend,
    spec: (more = [], changes = {}) => ({
      hostname: 'conformance',
      root: HOST_ROOT,
      user: USER,
      mounts: [...systemMounts(), ...more],
      env: { PATH: '/usr/local/bin:/usr/bin:/bin', LC_ALL: 'C' },
      workdir: sandboxPath('/tmp'),
      network: { kind: 'loopback' },
      limits: LIMITS,
      kernel: { ptrace: false, unixSockets: true },
      runtime: null,
      ...changes,
    }),
    writable(name) {
      const path = join(directory, name);
      mkdirSync(path, { recursive: true });
      if (CALLER === 'root') chownSync(path, USER.uid, USER.gid);
      return path;
    },
    write(path, content, mode = 0o644) {
      mkdirSync(dirname(join(project, path)), { recursive: true });
      writeFileSync(join(project, path), content);
      chmodSync(join(project, path), mode);
    },
    async start(command, { spec = place.spec(), stdio = {}, onListener } = {}) {
      const streams = { stdin: 'pipe', stdout: 'pipe', stderr: 'pipe', terminal: null, ...stdio } as const;
      const sandbox = await backend.start(spec, command, streams, onListener);
      started.push(sandbox);
      return sandbox;
    },
    async runRaw(command, options = {}) {
      const sandbox = await place.start(command, options);
      sandbox.stdin?.on('error', () => undefined);
      sandbox.stdin?.end(options.input ?? '');
      const [stdout, stderr, code] = await Promise.all([
        collect(sandbox.stdout),
        collect(sandbox.stderr),
        ended(sandbox, 30_000),
      ]);
      return { code, stdout, stderr };
    },
    async run(command, options = {}) {
      const { code, stdout, stderr } = await place.runRaw(command, options);
      return { code, stdout: stdout.toString('utf8'), stderr: stderr.toString('utf8') };
    },
    [Symbol.dispose]() {
      // A failed test may have left sandboxes running.
      for (const sandbox of started) sandbox.kill();
      // Whiteouts that an engine made belong to root; chmod fails on them, and rm does not need it.
      spawnSync('chmod', ['-R', 'u+rwX', root], { stdio: 'ignore' });
      execFileSync('rm', ['-rf', root]);
    },
  };
  return place;
}

export function bind(from: string, to: string, writable = false): Mount {
  return { kind: 'bind', from: hostPath(from), to: sandboxPath(to), writable, why: 'test' };
}

export function file(to: string, content: string): Mount {
  return { kind: 'file', content, to: sandboxPath(to), why: 'test' };
}

export function tmpfs(to: string, bytes = MiB, mode = '1777'): Mount {
  return { kind: 'tmpfs', to: sandboxPath(to), bytes, mode, why: 'test' };
}

export function dir(to: string, mode = '0755'): Mount {
  return { kind: 'dir', to: sandboxPath(to), mode, why: 'test' };
}

export function overlay(place: Place, hidden: readonly string[] = [], to = '/project'): Mount {
  return {
    kind: 'workspace',
    workspace: {
      kind: 'overlay',
      layers: [{ path: hostPath(place.project), identity: directoryIdentity(place.project) }],
      hidden,
      upper: hostPath(place.writable('upper')),
      work: hostPath(place.writable('work')),
    },
    to: sandboxPath(to),
    why: 'test',
  };
}

function systemMounts(): Mount[] {
  const { system } = readMachine({ home: '/', etc: [], toolDirs: [] });
  return [
    ...system.map(({ path, link }): Mount =>
      link === null ? bind(path, path) : { kind: 'symlink', target: link, to: sandboxPath(path), why: 'the system' },
    ),
    // On Debian, some programs are links through this directory.
    bind('/etc/alternatives', '/etc/alternatives'),
    { kind: 'proc', to: sandboxPath('/proc'), why: 'test' },
    { kind: 'dev', to: sandboxPath('/dev'), why: 'test' },
    tmpfs('/tmp', 64 * MiB),
  ];
}

export async function collect(stream: NodeJS.ReadableStream | null): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of (stream ?? []) as AsyncIterable<Buffer>) chunks.push(chunk);
  return Buffer.concat(chunks);
}

/** The exit code. A sandbox that does not end in time is killed, and the test fails. */
export async function ended(sandbox: Sandbox, withinMs = 30_000): Promise<number> {
  const late = Symbol('late');
  const timer = new AbortController();
  const first = await Promise.race([sandbox.done, sleep(withinMs, late, { signal: timer.signal })]);
  timer.abort();
  if (typeof first === 'number') return first;
  sandbox.kill();
  throw new Error(`the sandbox has not ended within ${withinMs} ms`);
}

/** Resolves when stdout contains the text. Later output is read and dropped, so that the command never blocks. */
export async function until(sandbox: Sandbox, text: string): Promise<void> {
  let said = '';
  await new Promise<void>((resolve, reject) => {
    sandbox.stdout?.on('data', (chunk: Buffer) => {
      said += chunk.toString('utf8');
      if (said.includes(text)) resolve();
    });
    sandbox.done.then((code) => reject(new Error(`ended with ${code} before it said ${text}: ${said}`)), reject);
    setTimeout(() => reject(new Error(`has not said ${text} within 30 s: ${said}`)), 30_000).unref();
  });
}

/** Prints the descriptors above 2 and their targets, without /dev/null and /proc. */
export const OTHER_DESCRIPTORS = [
  'perl',
  '-e',
  'opendir my $d, "/proc/self/fd"; for (sort { $a <=> $b } grep { $_ > 2 } readdir $d) { my $to = readlink "/proc/self/fd/$_"; print "$_ $to\n" if defined $to && $to ne "/dev/null" && $to !~ m(^/proc/) }',
] as const;

/** Descriptors that this process inherited and every child inherits; closing them is the command line's job, not the backend's. */
export const INHERITED: readonly string[] = readdirSync('/proc/self/fd').filter((fd) => {
  const flags = /^flags:\s*([0-7]+)/m.exec(read(`/proc/self/fdinfo/${fd}`))?.[1];
  return Number(fd) > 2 && flags !== undefined && (Number.parseInt(flags, 8) & 0o2000000) === 0;
});

/** Live processes of this machine with the word on their command line, launchers and sandboxed programs alike. */
export function processesNamed(word: string): string[] {
  return processesWith(word).flatMap((pid) => {
    const command = readProc(pid, 'cmdline').replaceAll('\0', ' ').trim();
    return command === '' ? [] : [`${pid} ${command.slice(0, 120)}`];
  });
}

/** Waits until no process has the word on its command line; returns those left at the timeout. */
export async function leftOf(word: string, withinMs = 30_000): Promise<string[]> {
  for (const end = Date.now() + withinMs; Date.now() < end && processesNamed(word).length > 0;) await sleep(10);
  return processesNamed(word);
}

/** Every path below a directory with mode, owner, time and content: equal results mean nothing changed. */
export function fingerprint(path: string): Record<string, string> {
  const found: Record<string, string> = {};
  for (const name of readdirSync(path, { recursive: true, encoding: 'utf8' }).toSorted()) {
    const stat = lstatSync(join(path, name));
    const content = stat.isFile()
      ? createHash('sha256')
          .update(readFileSync(join(path, name)))
          .digest('hex')
          .slice(0, 16)
      : stat.isSymbolicLink()
        ? readlinkSync(join(path, name))
        : '';
    found[name] = `${(stat.mode >>> 0).toString(8)} ${stat.uid} ${stat.mtimeMs} ${content}`;
  }
  return found;
}

function read(path: string): string {
  try {
    return readFileSync(path, 'latin1');
  } catch {
    // The descriptor is closed.
    return '';
  }
}
