// test/workspace/task.ts: runs agent-run.mjs as the machine's owner and collects its output.
import { spawn, type ChildProcess } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { shareReadiness, type Machine } from '../harness.ts';

const DRIVER = fileURLToPath(new URL('agent-run.mjs', import.meta.url));

export interface Said {
  readonly steps: readonly { readonly kind: string; readonly text: string }[];
  readonly output: readonly string[];
  readonly ready: Ready | null;
  readonly ran: readonly { readonly code: number; readonly stdout: string; readonly stderr: string }[];
  readonly error: { readonly code?: string; readonly message: string; readonly hint?: string } | null;
  readonly stderr: string;
}

export interface Ready {
  readonly commit: string;
  readonly layers: readonly string[];
  readonly index: string;
  readonly hidden: readonly string[];
  readonly exclude: readonly string[];
}

export interface Wish {
  readonly task: string;
  readonly commit?: string;
  readonly commands?: readonly string[];
  readonly workspace?: 'copy' | 'overlay';
  /** The task waits after each command until this returns. */
  readonly between?: (ran: number) => void;
}

export function startTask(machine: Machine, wish: Wish): ChildProcess {
  const identity = process.getuid?.() === 0 ? { uid: machine.uid, gid: machine.uid } : {};
  const { between, ...plain } = wish;
  return spawn(process.execPath, [DRIVER, JSON.stringify({ ...plain, again: between !== undefined })], {
    cwd: machine.project,
    env: machine.env,
    ...identity,
    stdio: ['pipe', 'pipe', 'pipe'],
  });
}

export async function runTask(machine: Machine, wish: Wish): Promise<Said> {
  shareReadiness(machine, 'modules');
  return listen(startTask(machine, wish), wish);
}

export async function listen(child: ChildProcess, wish: Pick<Wish, 'between'> = {}): Promise<Said> {
  const said = { steps: [], output: [], ready: null, ran: [], error: null, stderr: '' } as {
    -readonly [K in keyof Said]: Said[K] extends readonly (infer T)[] ? T[] : Said[K];
  };
  let rest = '';
  let trouble: Error | null = null;
  const take = (line: string): void => {
    const value = JSON.parse(line) as Record<string, never>;
    if ('step' in value) said.steps.push(value['step']);
    if ('output' in value) said.output.push(value['output']);
    if ('ready' in value) said.ready = value['ready'];
    if ('error' in value) said.error = value['error'];
    if ('ran' in value) {
      said.ran.push(value['ran']);
      if (wish.between === undefined) return;
      wish.between(said.ran.length);
      child.stdin?.write('\n');
    }
  };
  child.stdout?.on('data', (chunk: Buffer) => {
    const lines = (rest + chunk.toString('utf8')).split('\n');
    rest = lines.pop() ?? '';
    try {
      for (const line of lines) take(line);
    } catch (error) {
      trouble = error as Error;
      child.kill();
    }
  });
  child.stderr?.on('data', (chunk: Buffer) => (said.stderr += chunk.toString('utf8')));
  child.stdin?.on('error', () => undefined);
  await new Promise((resolve) => child.on('close', resolve));
  if (trouble !== null) throw trouble;
  return said;
}

export function layersDirOf(machine: Machine): string {
  return join(machine.stateDir, 'layers');
}
