// test/e2e/disk.ts: a machine with small, full or read-only file systems at some directories. They are mounted in the
// namespace of a process, so the real machine never gets a mount.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { AGS, asMember, type Machine, type Result } from '../harness.ts';

export interface Disk extends Disposable {
  /** The process in the mount namespace. */
  readonly pid: number;
  /** The command line that runs a program with these mounts, in the project. */
  enter(argv: readonly string[]): [string, ...string[]];
  /** Runs a script as root with these mounts. */
  sh(script: string): string;
  ags(...args: string[]): Promise<Result>;
  with(env: Record<string, string>, ...args: string[]): Promise<Result>;
}

/** The process ends with the test, even with a killed one. */
const NAMESPACE = ['--pdeathsig', 'KILL', 'unshare', '-m', '--propagation', 'private', 'sh', '-c'];

/** Only root can mount. */
export async function openDisk(machine: Machine, setup: string): Promise<Disk> {
  const owner = spawn('setpriv', [...NAMESPACE, `set -e; ${setup}; echo ready; exec sleep infinity`], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  await once(owner.stdout, 'data');
  const { pid } = owner;
  if (pid === undefined) throw new Error('the process with the mounts did not start');
  const enter = (argv: readonly string[]): [string, ...string[]] => [
    'nsenter',
    '-m',
    '-t',
    String(pid),
    '--',
    'sh',
    '-c',
    'cd "$1"; shift; exec "$@"',
    'sh',
    machine.project,
    ...argv,
  ];
  const run = async (env: Record<string, string>, args: readonly string[]): Promise<Result> => {
    const who = asMember(machine.uid, String(machine.uid));
    const [program, ...more] = enter([...who, process.execPath, AGS, ...args]);
    const child = spawn(program, more, { env: { ...machine.env, ...env }, stdio: ['ignore', 'pipe', 'pipe'] });
    let [stdout, stderr] = ['', ''];
    child.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString('utf8')));
    child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString('utf8')));
    const [code, signal] = (await once(child, 'close')) as [number | null, NodeJS.Signals | null];
    return { code, signal, stdout, stderr };
  };
  return {
    pid,
    enter,
    sh(script) {
      const [program, ...more] = enter(['sh', '-ec', script]);
      const done = spawnSync(program, more, { encoding: 'utf8' });
      if (done.status !== 0) throw new Error(`${script}: ${done.stderr}`);
      return done.stdout;
    },
    ags: (...args) => run({}, args),
    with: (env, ...args) => run(env, args),
    [Symbol.dispose]: () => void owner.kill('SIGKILL'),
  };
}
