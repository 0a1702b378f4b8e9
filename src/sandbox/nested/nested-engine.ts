// sandbox/nested/nested-engine.ts: starts nested Docker, the private engine of a task, in a container beside its sandbox.
// Invariants: the engine starts only after it was verified from outside that it has no rights on this machine; it never outlives this
// process; its output is passed on as bytes only.
import { spawn, type ChildProcess } from 'node:child_process';
import { chmodSync, existsSync, lstatSync, mkdirSync, readFileSync, readlinkSync, rmSync } from 'node:fs';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { visible } from '../../lib/sanitize.ts';
import { withStreams } from '../../lib/process/process.ts';
import { perlProgram } from '../../lib/perl.ts';
import { AgsError } from '../../protocol/errors.ts';
import type { Listener, Limits } from '../../protocol/spec.ts';
import type { OnListener } from '../backend.ts';
import { removeStaleContainers } from '../container/leftovers.ts';
import { ensureRootImage, rootImageName } from '../container/root-image.ts';
import { receiveListeners } from '../io/listeners.ts';
import { containerGone, callEngine, type Engine } from '../engine/engine.ts';
import { nearlyFull, watchFree } from '../watch/free-space.ts';
import { findProgram, installCommand } from '../programs.ts';
import {
  ENGINE_PORT,
  NESTED_BASE,
  NESTED_USERS,
  nestedArgs,
  nestedRootImage,
  REGISTRY_PORT,
  type NestedInput,
  type NestedPrograms,
} from './engine-args.ts';
import { ENGINE_INTERFACES, EGRESS_LISTENERS } from './egress-network.ts';
import { SYSTEM_DIRS } from '../spec/machine.ts';
import { listenerList } from '../io/descriptors.ts';
import { SYSTEM_PATH } from '../io/descriptors.ts';
import { ownerText } from '../engine/owner.ts';
import { engineFilter } from '../spec/seccomp.ts';

export interface NestedOptions extends EngineRun {
  readonly engine: Engine;
  readonly name: string;
  readonly limits: Pick<Limits, 'memoryBytes' | 'processes'>;
}

/** The inputs of nested Docker, in any kind of container. */
export interface EngineRun {
  readonly perl: string;
  readonly arch: 'x64' | 'arm64';
  /** Created and removed here. */
  readonly dir: string;
  readonly runMark: string;
  readonly tmpBytes: number;
  /** The engine's command line and environment. */
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** False: its containers reach only each other. */
  readonly gateway: boolean;
  /** Certificate authorities for containers, including the gateway's; empty: there is none. */
  readonly trust: string;
  /** "registry" is the engine's image cache; the others belong to the egress network. */
  readonly onListener: OnListener;
  /** Receives the ports that its containers publish, whenever they change. */
  onPorts(ports: readonly number[]): void;
}

export interface NestedEngine {
  /** Connects to the engine's network: to the engine itself (ENGINE_PORT), to a published port, or with an address to a container. */
  connect(port: number, address?: string): Promise<Socket>;
  /** Resolves with its last output line when nothing of it is left. */
  readonly done: Promise<string>;
  close(): Promise<void>;
}

const REGISTRY_LISTENER: Listener = { name: 'registry', protocol: 'tcp', address: '127.0.0.1', port: REGISTRY_PORT };

const egressListeners = ({ gateway }: Pick<EngineRun, 'gateway'>): readonly Listener[] =>
  gateway ? EGRESS_LISTENERS : [];

export async function startNestedEngine(options: NestedOptions): Promise<NestedEngine> {
  const { engine, dir } = options;
  const { argv, rootImage } = planNested(options);
  const user = { uid: NESTED_BASE, gid: NESTED_BASE };
  const disk = await callEngine(engine, ['info', '--format', '{{.DockerRootDir}}']);
  const full = await nearlyFull(disk);
  if (full !== null)
    throw new AgsError('disk.full', `Nested Docker was not started: ${full}.`, { hint: 'Free some space there.' });
  mkdirSync(dir, { recursive: true });
  // Regardless of the umask: the user-namespace helper has no special user.
  chmodSync(dir, 0o755);
  await Promise.all([ensureRootImage(engine, rootImage, user, dir), removeStaleContainers(engine)]);
  const started = await startEngine(options, {
    enter: () => callEngine(engine, argv),
    isLone: (nsPid) => /\s/.test(nsPid),
    async gone() {
      await containerGone(engine, options.name);
      rmSync(dir, { recursive: true, force: true });
    },
  });
  return endWhenFull(started, disk);
}

/** No limit counts the disk usage of its containers, and their disk need not be one that sandboxes are watched on. */
function endWhenFull(started: NestedEngine, disk: string): NestedEngine {
  let why: string | null = null;
  const watch = watchFree(disk, (full) => {
    why = full;
    void started.close().catch(() => undefined);
  });
  const done = started.done.then((words) => {
    watch[Symbol.dispose]();
    return why ?? words;
  });
  return { ...started, done };
}

export interface EnginePlace {
  /** Starts the user-namespace helper in it, which waits for the stream broker for a limited time. */
  enter(): Promise<unknown>;
  /** Does a process with this NSpid value see only the processes of its own container? */
  isLone(nsPid: string): boolean;
  /** Called after the stream broker has ended; resolves when nothing is left. */
  gone(): Promise<void>;
}

export async function startEngine(options: EngineRun, place: EnginePlace): Promise<NestedEngine> {
  const child = startBroker(options, brokerArgv(options));
  let said = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => void (said = `${said}${text}`.slice(-2000)));
  const lastWords = (): string => visible(said.trim().split('\n').at(-1) ?? '');
  const ended = new Promise<void>((resolve) => child.on('close', resolve).on('error', resolve));
  const listeners = receiveListeners(
    child,
    { kind: 'gateway', listeners: [...egressListeners(options), REGISTRY_LISTENER], reach: true },
    options.onListener,
    (ports) => options.onPorts(ports.filter((port) => port !== ENGINE_PORT && port !== REGISTRY_PORT)),
  );
  const done = ended.then(async () => {
    listeners.close();
    await place.gone();
    return lastWords();
  });
  const close = async (): Promise<void> => {
    child.kill('SIGKILL');
    await done;
  };
  try {
    const report = readReport(child);
    const listens = await report.line('l', ended);
    if (listens !== null) await place.enter();
    const pid = await report.line('p', ended);
    const lacking =
      pid === null
        ? lastWords() || 'it ended too early'
        : inspectSafely(() => unprotectedEngine(Number(pid), options, place));
    if (lacking !== null) throw notProtected(lacking);
    listeners.watchPorts();
    stream(child, 5).end('g');
    return { connect: listeners.connect, done, close };
  } catch (error) {
    await close();
    throw error;
  }
}

export interface NestedPlan {
  readonly argv: readonly string[];
  readonly broker: readonly string[];
  readonly rootImage: ReturnType<typeof nestedRootImage>;
}

export function planNested(options: Omit<NestedOptions, 'onListener' | 'onPorts' | 'trust'>): NestedPlan {
  const isLink = (path: string): boolean => lstatSync(path).isSymbolicLink();
  const there = SYSTEM_DIRS.filter((path) => existsSync(path));
  const links = there.filter(isLink).map((path) => ({ path, target: readlinkSync(path) }));
  const rootImage = nestedRootImage(links);
  const input: NestedInput = {
    name: options.name,
    run: options.runMark,
    owner: ownerText(),
    image: rootImageName(rootImage, { uid: NESTED_BASE, gid: NESTED_BASE }),
    arch: options.arch,
    perl: options.perl,
    limits: options.limits,
    meeting: options.dir,
    // /etc/alternatives maps a name such as iptables to one of several programs.
    system: [...there.filter((path) => !isLink(path)), ...['/etc/alternatives'].filter((path) => existsSync(path))],
  };
  return { argv: nestedArgs(input), broker: brokerArgv(options), rootImage };
}

// prctl, sendmsg
const BROKER_CALLS = { x64: '157,46', arm64: '167,211' } as const;

function brokerArgv(options: Omit<EngineRun, 'onListener' | 'onPorts' | 'trust'>): string[] {
  const env = Object.entries(options.env).map(([name, value]) => `${name}=${value}`);
  return [
    options.perl,
    '-e',
    perlProgram('sandbox/perl/nested-broker.pl'),
    '--',
    BROKER_CALLS[options.arch],
    String(process.pid),
    options.dir,
    String(NESTED_BASE),
    String(options.tmpBytes),
    String(ENGINE_PORT),
    env.join('\n'),
    ...[egressListeners(options), [REGISTRY_LISTENER]].map((listeners) => listenerList(listeners).slice(1).join(' ')),
    ...options.argv,
  ];
}

function startBroker(options: EngineRun, [file = '', ...args]: readonly string[]): ChildProcess {
  const child = withStreams(
    spawn(file, args, {
      env: { PATH: SYSTEM_PATH, AGS_RUN: options.runMark },
      cwd: '/',
      detached: true,
      stdio: ['ignore', 'ignore', 'pipe', 'pipe', 'pipe', 'pipe', 'ipc'],
    }),
  );
  for (const at of [3, 4, 5]) stream(child, at).on('error', () => undefined);
  stream(child, 4).end(Buffer.concat([engineFilter(options.arch), Buffer.from(options.trust)].flatMap(withSize)));
  return child;
}

/** Length-prefixed, for Perl's "N/a*". */
function withSize(content: Buffer): Buffer[] {
  const size = Buffer.alloc(4);
  size.writeUInt32BE(content.length);
  return [size, content];
}

/** Node's types cover only five streams. */
function stream(child: ChildProcess, at: number): Duplex {
  return (child.stdio as readonly unknown[])[at] as Duplex;
}

/** Reads lines that begin with a letter. null: the process ended without such a line. */
function readReport(child: ChildProcess): { line(letter: string, ended: Promise<void>): Promise<string | null> } {
  const from = stream(child, 3);
  let text = '';
  let wake: () => void = () => undefined;
  from.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk;
    wake();
  });
  return {
    line: (letter, ended) =>
      new Promise((resolve) => {
        wake = (): void => {
          const found = new RegExp(`^${letter}(.*)\n`, 'm').exec(text);
          if (found !== null) resolve(found[1] ?? '');
        };
        wake();
        void ended.then(() => resolve(null));
      }),
  };
}

/** The process may end at any moment, and its /proc files with it. */
function inspectSafely(look: () => string | null): string | null {
  try {
    return look();
  } catch (error) {
    return `its protection could not be read (${(error as Error).message})`;
  }
}

/** Checks in /proc that the engine gave up its rights: its user, the users it can become, its filter, its network. */
function unprotectedEngine(pid: number, { gateway }: Pick<EngineRun, 'gateway'>, place: EnginePlace): string | null {
  const read = (name: string): string => readFileSync(`/proc/${pid}/${name}`, 'utf8');
  const status = read('status');
  const of = (name: string): string => new RegExp(`^${name}:\\s*(.*)$`, 'm').exec(status)?.[1]?.trim() ?? '';
  const own = Array(4).fill(NESTED_BASE).join('\t');
  if (of('Uid') !== own || of('Gid') !== own) return 'it ran as a user of this machine';
  for (const kind of ['uid_map', 'gid_map'])
    if (read(kind).trim().split(/\s+/).join(' ') !== `0 ${NESTED_BASE} ${NESTED_USERS}`)
      return 'it could become a user of this machine';
  if (of('Seccomp') !== '2') return 'its system calls were not filtered';
  if (!place.isLone(of('NSpid'))) return 'it saw the processes of this machine';
  const interfaces = read('net/dev')
    .split('\n')
    .flatMap((line) => /^\s*([^:|]+):/.exec(line)?.[1] ?? []);
  if (interfaces.join() !== (gateway ? ENGINE_INTERFACES : ['lo']).join()) return 'it was in a network of this machine';
  return null;
}

function notProtected(why: string): AgsError {
  return new AgsError('backend.unprotected', `Nested Docker was not started: ${why}.`, {
    hint: 'See what works here: ags doctor',
  });
}

/** Finds the engine's programs on this machine. Throws if one is missing. */
export function findNestedPrograms(): NestedPrograms {
  const [dockerd, proxy] = [findProgram('dockerd'), findProgram('docker-proxy')];
  const missing = ['containerd', 'runc', 'iptables'].filter((name) => findProgram(name) === null);
  if (dockerd !== null && proxy !== null && missing.length === 0) return { dockerd, proxy };
  throw new AgsError(
    'backend.unavailable',
    'Docker inside a sandbox needs the programs of an engine on this machine.',
    {
      hint: `Install it: ${installCommand(['docker.io', 'iptables'])}`,
    },
  );
}
