// sandbox/nested/nested-engine.ts: an engine of a task's own, in a container beside its sandbox.
// Invariants: the engine starts only when it has been seen from outside to be nobody on this machine; nothing of it outlives this
// process; of what it says only bytes are passed on.
import { spawn, type ChildProcess } from 'node:child_process';
import { chmodSync, existsSync, lstatSync, mkdirSync, readFileSync, readlinkSync, rmSync } from 'node:fs';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { visible } from '../../lib/sanitize.ts';
import { withStreams } from '../../lib/process/process.ts';
import { AgsError } from '../../protocol/errors.ts';
import type { Door, Limits } from '../../protocol/spec.ts';
import type { OnDoor } from '../backend.ts';
import { removeStaleContainers } from '../container/leftovers.ts';
import { ensureSkeleton, skeletonName } from '../container/root-image.ts';
import { receiveDoors } from '../io/listeners.ts';
import { containerGone, tellEngine, type Engine } from '../engine/engine.ts';
import { nearlyFull, watchFree } from '../watch/free-space.ts';
import { findProgram, installCommand } from '../checks/host.ts';
import {
  ENGINE_PORT,
  INNER_BASE,
  innerArgs,
  innerSkeleton,
  REGISTRY_PORT,
  type InnerInput,
  type InnerPrograms,
} from './engine-args.ts';
import { ENGINE_INTERFACES, HALL_DOORS } from './egress-network.ts';
import { INNER_USERS, INNER_USHER } from '../inner-scripts.ts';
import { SYSTEM_DIRS } from '../spec/machine.ts';
import { doorList } from '../native/launch.ts';
import { SYSTEM_PATH } from '../native/native.ts';
import { ownerText } from '../engine/owner.ts';
import { engineFilter } from '../spec/seccomp.ts';

export interface InnerOptions extends EngineRun {
  readonly engine: Engine;
  readonly name: string;
  readonly limits: Pick<Limits, 'memoryBytes' | 'processes'>;
}

/** What an engine inside has, whatever the container is that it is in. */
export interface EngineRun {
  readonly perl: string;
  readonly arch: 'x64' | 'arm64';
  /** Made and removed here. */
  readonly dir: string;
  readonly runMark: string;
  readonly tmpBytes: number;
  /** Its own command line and variables. */
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** False: its containers reach each other, and nobody else. */
  readonly gateway: boolean;
  /** Authorities for containers, with that of the gateway; empty: it has none. */
  readonly trust: string;
  /** "registry" is where the engine asks for images, the others are those of the hall. */
  readonly onDoor: OnDoor;
  /** Ports that its containers have published, whenever that changes. */
  onPorts(ports: readonly number[]): void;
}

export interface InnerEngine {
  /**
   * A connection into the network of the engine: to itself (ENGINE_PORT), or to what its containers publish; with an address, to the
   * container that has it.
   */
  connect(port: number, address?: string): Promise<Socket>;
  /** Resolves when nothing of it is left, with what it said last. */
  readonly done: Promise<string>;
  close(): Promise<void>;
}

const REGISTRY_DOOR: Door = { name: 'registry', protocol: 'tcp', address: '127.0.0.1', port: REGISTRY_PORT };

const hallDoors = ({ gateway }: Pick<EngineRun, 'gateway'>): readonly Door[] => (gateway ? HALL_DOORS : []);

export async function startInnerEngine(options: InnerOptions): Promise<InnerEngine> {
  const { engine, dir } = options;
  const { argv, skeleton } = planInner(options);
  const user = { uid: INNER_BASE, gid: INNER_BASE };
  const disk = await tellEngine(engine, ['info', '--format', '{{.DockerRootDir}}']);
  const full = await nearlyFull(disk);
  if (full !== null)
    throw new AgsError('disk.full', `The engine inside was not started: ${full}.`, { hint: 'Free some space there.' });
  mkdirSync(dir, { recursive: true });
  // Whatever the umask is: the keeper is nobody in particular.
  chmodSync(dir, 0o755);
  await Promise.all([ensureSkeleton(engine, skeleton, user, dir), removeStaleContainers(engine)]);
  const started = await startEngine(options, {
    enter: () => tellEngine(engine, argv),
    isApart: (nsPid) => /\s/.test(nsPid),
    async gone() {
      await containerGone(engine, options.name);
      rmSync(dir, { recursive: true, force: true });
    },
  });
  return endWhenFull(started, disk);
}

/** No limit counts what its containers write, and the disk that they write to need not be the one that sandboxes are watched on. */
function endWhenFull(started: InnerEngine, disk: string): InnerEngine {
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
  /** Starts the keeper in it, or has done so: it waits for the usher, but not for ever. */
  enter(): Promise<unknown>;
  /** Does a process with these numbers see those of its own container alone? */
  isApart(nsPid: string): boolean;
  /** The usher has ended; until nothing is left. */
  gone(): Promise<void>;
}

export async function startEngine(options: EngineRun, place: EnginePlace): Promise<InnerEngine> {
  const child = startUsher(options, usherArgv(options));
  let said = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => void (said = `${said}${text}`.slice(-2000)));
  const lastWords = (): string => visible(said.trim().split('\n').at(-1) ?? '');
  const ended = new Promise<void>((resolve) => child.on('close', resolve).on('error', resolve));
  const doors = receiveDoors(
    child,
    { kind: 'gateway', doors: [...hallDoors(options), REGISTRY_DOOR], reach: true },
    options.onDoor,
    (ports) => options.onPorts(ports.filter((port) => port !== ENGINE_PORT && port !== REGISTRY_PORT)),
  );
  const done = ended.then(async () => {
    doors.close();
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
      pid === null ? lastWords() || 'it ended too early' : lookAt(() => unprotectedEngine(Number(pid), options, place));
    if (lacking !== null) throw notProtected(lacking);
    doors.watchPorts();
    stream(child, 5).end('g');
    return { connect: doors.connect, done, close };
  } catch (error) {
    await close();
    throw error;
  }
}

export interface InnerPlan {
  readonly argv: readonly string[];
  readonly usher: readonly string[];
  readonly skeleton: ReturnType<typeof innerSkeleton>;
}

export function planInner(options: Omit<InnerOptions, 'onDoor' | 'onPorts' | 'trust'>): InnerPlan {
  const isLink = (path: string): boolean => lstatSync(path).isSymbolicLink();
  const there = SYSTEM_DIRS.filter((path) => existsSync(path));
  const links = there.filter(isLink).map((path) => ({ path, target: readlinkSync(path) }));
  const skeleton = innerSkeleton(links);
  const input: InnerInput = {
    name: options.name,
    run: options.runMark,
    owner: ownerText(),
    image: skeletonName(skeleton, { uid: INNER_BASE, gid: INNER_BASE }),
    arch: options.arch,
    perl: options.perl,
    limits: options.limits,
    meeting: options.dir,
    // Where a system keeps which of several programs a name stands for: iptables, for one.
    system: [...there.filter((path) => !isLink(path)), ...['/etc/alternatives'].filter((path) => existsSync(path))],
  };
  return { argv: innerArgs(input), usher: usherArgv(options), skeleton };
}

// prctl, sendmsg
const USHER_CALLS = { x64: '157,46', arm64: '167,211' } as const;

function usherArgv(options: Omit<EngineRun, 'onDoor' | 'onPorts' | 'trust'>): string[] {
  const env = Object.entries(options.env).map(([name, value]) => `${name}=${value}`);
  return [
    options.perl,
    '-e',
    INNER_USHER,
    '--',
    USHER_CALLS[options.arch],
    String(process.pid),
    options.dir,
    String(INNER_BASE),
    String(options.tmpBytes),
    String(ENGINE_PORT),
    env.join('\n'),
    ...[hallDoors(options), [REGISTRY_DOOR]].map((doors) => doorList(doors).slice(1).join(' ')),
    ...options.argv,
  ];
}

function startUsher(options: EngineRun, [file = '', ...args]: readonly string[]): ChildProcess {
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

/** As Perl's "N/a*" reads it. */
function withSize(content: Buffer): Buffer[] {
  const size = Buffer.alloc(4);
  size.writeUInt32BE(content.length);
  return [size, content];
}

/** Node's types end at the fifth. */
function stream(child: ChildProcess, at: number): Duplex {
  return (child.stdio as readonly unknown[])[at] as Duplex;
}

/** Lines that begin with a letter. null: it ended before it said that. */
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

/** It may end at any moment, and what there was to read with it. */
function lookAt(look: () => string | null): string | null {
  try {
    return look();
  } catch (error) {
    return `what it had given up could not be read (${(error as Error).message})`;
  }
}

/** What the engine has not given up, read from the kernel: who it is, whom it can be, its filter, its network. */
function unprotectedEngine(pid: number, { gateway }: Pick<EngineRun, 'gateway'>, place: EnginePlace): string | null {
  const read = (name: string): string => readFileSync(`/proc/${pid}/${name}`, 'utf8');
  const status = read('status');
  const of = (name: string): string => new RegExp(`^${name}:\\s*(.*)$`, 'm').exec(status)?.[1]?.trim() ?? '';
  const own = Array(4).fill(INNER_BASE).join('\t');
  if (of('Uid') !== own || of('Gid') !== own) return 'it ran as a user of this machine';
  for (const kind of ['uid_map', 'gid_map'])
    if (read(kind).trim().split(/\s+/).join(' ') !== `0 ${INNER_BASE} ${INNER_USERS}`)
      return 'it could become a user of this machine';
  if (of('Seccomp') !== '2') return 'its system calls were not filtered';
  if (!place.isApart(of('NSpid'))) return 'it saw the processes of this machine';
  const interfaces = read('net/dev')
    .split('\n')
    .flatMap((line) => /^\s*([^:|]+):/.exec(line)?.[1] ?? []);
  if (interfaces.join() !== (gateway ? ENGINE_INTERFACES : ['lo']).join()) return 'it was in a network of this machine';
  return null;
}

function notProtected(why: string): AgsError {
  return new AgsError('backend.unprotected', `The engine inside was not started: ${why}.`, {
    hint: 'See what works here: ags doctor',
  });
}

/** The engine's programs are those of this machine. Throws what is missing. */
export function findInnerPrograms(): InnerPrograms {
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
