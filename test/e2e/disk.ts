// test/e2e/disk.ts: a machine some of whose directories are other file systems: small, full or read-only. They are mounted
// in a namespace that a process of ours holds, so the real machine has no mount more than before, whatever happens.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { AGS, type Machine, type Result } from '../harness.ts';

export interface Disk extends Disposable {
  /** As root, among the mounts. */
  sh(script: string): string;
  ags(...args: string[]): Promise<Result>;
  with(env: Record<string, string>, ...args: string[]): Promise<Result>;
}

/** Only root can mount. */
export async function openDisk(machine: Machine, setup: string): Promise<Disk> {
  const holder = spawn(
    'unshare',
    ['-m', '--propagation', 'private', 'sh', '-c', `set -e; ${setup}; echo ready; exec sleep 600`],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  );
  await once(holder.stdout, 'data');
  const inside = (argv: readonly string[]): string[] => [
    '-m',
    '-t',
    String(holder.pid),
    '--',
    'sh',
    '-c',
    'cd "$1"; shift; exec "$@"',
    'sh',
    machine.project,
    ...argv,
  ];
  const run = async (env: Record<string, string>, args: readonly string[]): Promise<Result> => {
    const identity = ['setpriv', `--reuid=${machine.uid}`, `--regid=${machine.uid}`, '--clear-groups'];
    const child = spawn('nsenter', inside([...identity, process.execPath, AGS, ...args]), {
      env: { ...machine.env, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let [stdout, stderr] = ['', ''];
    child.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString('utf8')));
    child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString('utf8')));
    const [code, signal] = (await once(child, 'close')) as [number | null, NodeJS.Signals | null];
    return { code, signal, stdout, stderr };
  };
  return {
    sh(script) {
      const done = spawnSync('nsenter', inside(['sh', '-ec', script]), { encoding: 'utf8' });
      if (done.status !== 0) throw new Error(`${script}: ${done.stderr}`);
      return done.stdout;
    },
    ags: (...args) => run({}, args),
    with: (env, ...args) => run(env, args),
    [Symbol.dispose]: () => void holder.kill('SIGKILL'),
  };
}
