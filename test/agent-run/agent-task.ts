// test/agent-run/agent-task.ts: runs a shell script as an agent in a sandbox over the project, and brings its work out.
// needs: sandbox
import { execFile } from 'node:child_process';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'vitest';
import type { Machine } from '../harness.ts';

export interface AgentTask {
  readonly id: string;
  readonly branch: string;
  readonly directory: string;
  readonly base: string;
  bringOut(): Promise<Brought>;
}

export interface Brought {
  readonly result?: { commit: string; files: number; added: number; removed: number } | null;
  readonly error?: { code: string; message: string; hint?: string; stack: string };
}

const KEEP = '.ags-kept';

/** Runs the script inside without bringing its work out. */
export async function runAgent(
  machine: Machine,
  script: string,
  options: { name?: string; goal?: string; scratch?: string[]; cwd?: string } = {},
): Promise<AgentTask> {
  const before = new Set(machine.tasks());
  const at = options.cwd === undefined ? {} : { cwd: options.cwd };
  const git = (...args: string[]): string =>
    machine.git(...(options.cwd === undefined ? [] : ['-C', options.cwd]), ...args).trim();
  const base = git('rev-parse', 'HEAD');
  const ref = gitOr('', () => git('symbolic-ref', '-q', 'HEAD'));
  const run = await machine.ags(
    ['exec', '--name', options.name ?? 'work', '--review', 'later', '--', 'sh', '-c', `${script}\ntouch ${KEEP}`],
    at,
  );
  expect(run.code, run.stderr).toBe(0);
  const id = machine.tasks().find((one) => !before.has(one)) ?? '';
  const directory = join(machine.stateDir, 'tasks', id);
  for (const name of ['capture.json', 'changes.json', 'staging.git'])
    rmSync(join(directory, name), { recursive: true, force: true });
  edit(join(directory, 'task.json'), (task) => ({
    ...task,
    kind: 'agent',
    goal: {
      text: options.goal ?? 'Do the work\n\nwith care',
      agent: 'command',
      interactive: false,
      base,
      baseRef: ref === '' ? null : ref,
      maxSeconds: null,
      maxCostMicros: null,
      maxTurns: null,
      flags: {},
    },
  }));
  edit(join(directory, 'run.json'), (old) => ({ ...old, state: 'ready', number: 1 }));
  return {
    id,
    branch: `ags/${id}`,
    directory,
    base,
    bringOut: () => bringOut(machine, id, [KEEP, ...(options.scratch ?? [])]),
  };
}

export async function agentTask(
  machine: Machine,
  script: string,
  options: Parameters<typeof runAgent>[2] = {},
): Promise<AgentTask & { commit: string }> {
  const task = await runAgent(machine, script, options);
  const brought = await task.bringOut();
  expect(brought.error?.stack).toBe(undefined);
  return { ...task, commit: brought.result?.commit ?? '' };
}

function bringOut(machine: Machine, id: string, scratch: readonly string[]): Promise<Brought> {
  const identity = process.getuid?.() === 0 ? { uid: machine.uid, gid: machine.uid } : {};
  const details = JSON.stringify({ agentTitle: 'Test Agent', agentEmail: 'agent@example.test', scratch });
  return new Promise((resolve, reject) =>
    execFile(
      process.execPath,
      [fileURLToPath(new URL('../results/bring-out-driver.mjs', import.meta.url)), id, details],
      { cwd: machine.project, env: machine.env, ...identity, maxBuffer: 2 ** 24, timeout: 110_000 },
      (error, stdout, stderr) => {
        try {
          resolve(JSON.parse(stdout) as Brought);
        } catch {
          reject(new Error(`${error?.message ?? ''}\n${stdout}${stderr}`));
        }
      },
    ),
  );
}

function edit(file: string, change: (old: Record<string, unknown>) => Record<string, unknown>): void {
  writeFileSync(file, JSON.stringify(change(JSON.parse(readFileSync(file, 'utf8')) as Record<string, unknown>)));
}

function gitOr(otherwise: string, git: () => string): string {
  try {
    return git();
  } catch {
    return otherwise;
  }
}
