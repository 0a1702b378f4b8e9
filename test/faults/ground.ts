// test/faults/ground.ts: the machine for fault rounds: a project with uncommitted user files, a small disk for the state of ags, a clock that
// can be changed, and an origin that can fail. All rounds share it, so each meets what the one before left.
// uses: curl, docker, redis
// needs: low-ports
import { spawn, type ChildProcess } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TLSSocket } from 'node:tls';
import { fileURLToPath } from 'node:url';
import { openDisk } from '../e2e/disk.ts';
import { createWorld, ORIGIN, type HostContext } from '../gateway/fixture.ts';
import {
  AGS,
  asMember,
  createMachine,
  giveTo,
  shareReadiness,
  type Caller,
  type Machine,
  type Result,
} from '../harness.ts';
import { processesOf, type Seen } from './processes.ts';

/** The user's uncommitted files; ags must not touch them. */
export const OWN = { 'own.txt': 'changed by hand\n', 'notes.md': 'not in git at all\n' } as const;
export const FILES = Array.from({ length: 12 }, (_, i) => `f${i}.txt`);

const CLOCK = fileURLToPath(new URL('clock.cjs', import.meta.url));
export type Engine = 'docker' | 'podman';

/** Only root can mount a small disk. */
export const CAN_FILL = process.getuid?.() === 0;

export interface Running {
  readonly args: readonly string[];
  readonly child: ChildProcess;
  readonly ended: Promise<Result>;
  isOver(): boolean;
}

export interface Ground extends AsyncDisposable {
  readonly machine: Machine;
  /** The state directory, as this process sees it. */
  readonly stateDir: string;
  readonly context: HostContext;
  start(...args: string[]): Running;
  ags(...args: string[]): Promise<Result>;
  /** Processes of ags, excluding the test's own. */
  processes(): Seen[];
  /** Runs as root in the machine's mount namespace. */
  sh(script: string): string;
  fillDisk(): void;
  freeDisk(): void;
  /** Shifts the clock of all programs of ags that started with `movable`. */
  moveClock(seconds: number): void;
  movable: boolean;
  /** How the origin treats current and later answers. */
  upstream: 'well' | 'silent' | 'cut';
  /** A process in the machine's mount namespace. */
  readonly mountsOf: number | 'self';
  /** The engine of all sandboxes; null: native. */
  readonly engine: Engine | null;
}

/** `user`: an ordinary user with subordinate IDs for Podman. */
export async function createGround(
  caller: Caller,
  engine: Engine | null = null,
  user?: { readonly uid: number; readonly env: Readonly<Record<string, string>> },
): Promise<Ground> {
  const files = { 'own.txt': 'as it was\n', ...Object.fromEntries(FILES.map((name) => [name, 'old\n'])) };
  // Docker's daemon cannot see the tests' own /tmp or a disk in a mount namespace.
  const machine = createMachine(caller, { files, disk: engine === 'docker' ? '/var/lib' : undefined, user });
  for (const [key, value] of [
    ['user.name', 'Dev'],
    ['user.email', 'dev@example.test'],
  ] as const)
    machine.git('config', key, value);
  for (const [name, text] of Object.entries(OWN)) machine.write(name, text);
  const context = await createWorld();
  const clock = join(machine.root, 'clock');
  writeFileSync(clock, '0');
  mkdirSync(machine.stateDir, { recursive: true });
  machine.write('../../.config/ags/config.yaml', configOf(context));
  giveTo(machine.root, machine.uid);
  const size = `size=48m,mode=700,uid=${machine.uid},gid=${machine.uid}`;
  const disk =
    CAN_FILL && engine === null ? await openDisk(machine, `mount -t tmpfs -o ${size} tmpfs ${machine.stateDir}`) : null;
  const wrap = (argv: readonly string[]): [string, ...string[]] => {
    const mine = [...asMember(machine.uid, engine === 'docker' ? engine : String(machine.uid)), ...argv] as const;
    return disk === null ? [...mine] : disk.enter(mine);
  };
  const ground: Ground = {
    machine,
    context,
    engine,
    mountsOf: disk?.pid ?? 'self',
    stateDir: disk === null ? machine.stateDir : `/proc/${disk.pid}/root${machine.stateDir}`,
    movable: false,
    upstream: 'well',
    start(...args) {
      shareReadiness(machine);
      const moved = { NODE_OPTIONS: `--require "${CLOCK}"`, AGS_FAULT_CLOCK: clock };
      const env = { ...machine.env, ...(ground.movable ? moved : {}) };
      const [verb = '', ...rest] = args;
      const backend = engine !== null && ['exec', 'start'].includes(verb) ? ['--backend', engine] : [];
      const [program, ...more] = wrap([process.execPath, AGS, verb, ...backend, ...rest]);
      return running(args, spawn(program, more, { cwd: machine.project, env, stdio: ['ignore', 'pipe', 'pipe'] }));
    },
    ags: (...args) => ground.start(...args).ended,
    processes: () => processesOf(machine, [disk?.pid ?? 0, pauseOf(machine)]),
    sh(script) {
      if (disk === null) throw new Error('this ground has no disk');
      return disk.sh(script);
    },
    fillDisk: () =>
      void ground.sh(
        `dd if=/dev/zero of=${machine.stateDir}/filler bs=4k oflag=append conv=notrunc 2> /dev/null || true`,
      ),
    freeDisk: () => void ground.sh(`rm -f ${machine.stateDir}/filler`),
    moveClock: (seconds) => writeFileSync(clock, String(seconds)),
    async [Symbol.asyncDispose]() {
      for (const { pid } of ground.processes()) endIfThere(pid);
      disk?.[Symbol.dispose]();
      await context[Symbol.asyncDispose]();
      machine[Symbol.dispose]();
    },
  };
  await context.tls(443, (socket) => answer(socket, ground));
  return ground;
}

const configOf = (context: HostContext): string =>
  `network:\n  dns: ["${context.dns}"]\n  addresses: ["${ORIGIN}/32"]\n  allow: [allowed.test]\n`;

/** Answers slowly in many pieces, so that a fault can strike in the middle. */
function answer(socket: TLSSocket, ground: Ground): void {
  socket.once('data', () => {
    socket.write('HTTP/1.1 200 OK\r\nContent-Length: 40000\r\n\r\n');
    let left = 40;
    const timer = setInterval(() => {
      if (ground.upstream === 'cut') socket.destroy();
      if (ground.upstream === 'well' && left-- > 0) socket.write('x'.repeat(1000));
      if (left <= 0) socket.end();
      if (left <= 0 || socket.destroyed) clearInterval(timer);
    }, 10);
    socket.on('close', () => clearInterval(timer));
  });
}

/** Podman's pause process of this user, which holds the namespaces of its containers. */
function pauseOf({ env }: Machine): number {
  const runtime = env['XDG_RUNTIME_DIR'];
  return runtime === undefined ? 0 : Number(readIfThere(join(runtime, 'libpod/tmp/pause.pid')) ?? 0);
}

function running(args: readonly string[], child: ChildProcess): Running {
  let [stdout, stderr] = ['', ''];
  child.stdout?.on('data', (chunk: Buffer) => (stdout += chunk.toString('utf8')));
  child.stderr?.on('data', (chunk: Buffer) => (stderr += chunk.toString('utf8')));
  const ended = new Promise<Result>((resolve) =>
    child.on('close', (code, signal) => resolve({ code, signal, stdout, stderr })),
  );
  return { args, child, ended, isOver: () => child.exitCode !== null || child.signalCode !== null };
}

export function endIfThere(pid: number, signal: NodeJS.Signals = 'SIGKILL'): boolean {
  try {
    return process.kill(pid, signal);
  } catch {
    return false;
  }
}

export function readIfThere(path: string): string | null {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return null;
  }
}
