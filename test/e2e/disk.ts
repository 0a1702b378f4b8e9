// test/e2e/disk.ts: a machine some of whose directories are other file systems: small, full or read-only. They are mounted
// in a namespace that a process of ours holds, so the real machine has no mount more than before, whatever happens.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { AGS, asMember, type Machine, type Result } from '../harness.ts';

export interface Disk extends Disposable {
  /** The process whose mounts they are. */
  readonly pid: number;
  /** What runs a program among the mounts, in the project. */
  enter(argv: readonly string[]): [string, ...string[]];
  /** As root, among the mounts. */
  sh(script: string): string;
  ags(...args: string[]): Promise<Result>;
  with(env: Record<string, string>, ...args: string[]): Promise<Result>;
}

/** It ends with the test, also with one that is killed. */
const HELD = ['--pdeathsig', 'KILL', 'unshare', '-m', '--propagation', 'private', 'sh', '-c'];

/** Only root can mount. */
export async function openDisk(machine: Machine, setup: string): Promise<Disk> {
  const holder = spawn('setpriv', [...HELD, `set -e; ${setup}; echo ready; exec sleep infinity`], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  await once(holder.stdout, 'data');
  const { pid } = holder;
  if (pid === undefined) throw new Error('no process holds the disk');
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
    [Symbol.dispose]: () => void holder.kill('SIGKILL'),
  };
}
