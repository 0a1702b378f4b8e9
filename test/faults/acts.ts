// test/faults/acts.ts: the user commands that a fault interrupts, run as real processes.
import { join } from 'node:path';
import type { Result } from '../harness.ts';
import { exportTask, importTask } from './carried.ts';
import { checkTask } from './checked.ts';
import { baseOf, eventsOf, list, taskNames, type Ledger } from './checker.ts';
import { forkTask } from './forked.ts';
import { readIfThere, type Ground, type Running } from './ground.ts';
import type { Role } from './processes.ts';
import { serveGateway } from './served.ts';
import { watchTask } from './watched.ts';

export interface Round {
  readonly ground: Ground;
  readonly ledger: Ledger;
  /** Unique to this round. */
  readonly name: string;
}

export interface Begun {
  readonly running: Running;
  readonly task: string | null;
  /** Files that the act may add beside the user's own: all or none. */
  readonly applied?: readonly string[];
  /** The round deletes the task at its end. */
  readonly passing?: true;
  /** Ends an act that would run forever, after the fault. */
  leave?(): void;
  /** Verifies the act's promises and cleans up. Returns problems. */
  end?(result: Result): Promise<string[]> | string[];
}

export interface Act {
  readonly name: string;
  /** Approximate duration, until measured. */
  readonly lastsMs: number;
  /** The processes that a fault can hit. */
  readonly roles: readonly Role[];
  /** Sends requests to the origin. */
  readonly online?: true;
  begin(round: Round): Promise<Begun> | Begun;
}

const AGENT = ['-a', 'demo', '--max-parallel', '64'];
const goalOf = (name: string): string =>
  [
    `write: ${name}/a.txt one`,
    `commit: First of ${name}`,
    'wait: 0.1',
    `write: ${name}/b.txt two`,
    `commit: Second of ${name}`,
    `write: ${name}/c.txt three`,
    `say: done with ${name}`,
  ].join(' // ');

const start: Act = {
  name: 'start',
  lastsMs: 1500,
  roles: ['cli', 'runner', 'launcher', 'inside', 'helper'],
  begin: ({ ground, name }) => ({ running: ground.start('start', name, goalOf(name), ...AGENT), task: name }),
};

const watched: Act = {
  name: 'watched',
  lastsMs: 1500,
  roles: ['server', 'runner'],
  begin: ({ ground, name }) => watchTask(ground, name, ['start', name, goalOf(name), ...AGENT]),
};

const send: Act = {
  name: 'send',
  lastsMs: 1500,
  roles: ['cli', 'runner', 'launcher', 'inside', 'helper'],
  async begin(round) {
    const task = await readyTask(round);
    const text = `write: ${round.name}.txt more // commit: Message of ${round.name} // write: ${round.name}.txt again`;
    return {
      running: round.ground.start('send', task, text),
      task,
      end({ code }) {
        if (code === 0) round.ledger.messages.push({ task, text });
        return [];
      },
    };
  },
};

const restart: Act = {
  name: 'restart',
  lastsMs: 800,
  roles: ['cli', 'runner', 'helper'],
  async begin(round) {
    const task = await readyTask(round);
    return { running: round.ground.start('restart', task, '-d'), task };
  },
};

const merge: Act = {
  name: 'merge',
  lastsMs: 600,
  roles: ['cli', 'helper'],
  async begin(round) {
    const task = await readyTask(round);
    return {
      running: round.ground.start('merge', task, '-y'),
      task,
      end: (result) => told(round, result, 'merge', task),
    };
  },
};

const undo: Act = {
  name: 'undo',
  lastsMs: 500,
  roles: ['cli', 'helper'],
  async begin(round) {
    const { ground } = round;
    let task = lastMerged(ground);
    if (task === null) {
      task = await readyTask(round);
      const merged = await ground.ags('merge', task, '-y');
      if (merged.code !== 0) throw new Error(`a merge without a fault: ${merged.stderr}`);
      told(round, merged, 'merge', task);
    }
    return { running: ground.start('undo'), task, end: (result) => told(round, result, 'undo', task) };
  },
};

const apply: Act = {
  name: 'apply',
  lastsMs: 500,
  roles: ['cli'],
  async begin(round) {
    const { ground } = round;
    const task = await readyTask(round);
    const names = (from: string): string[] =>
      ground.machine.git('diff', '--name-only', from, `ags/${task}`).trim().split('\n');
    // The diff to main alone is not enough: an earlier merge of the task may have been undone. Skips files that main already has.
    const missing = new Set(names('main'));
    const applied = names(baseOf(ground.stateDir, task) ?? '').filter((path) => missing.has(path));
    return {
      running: ground.start('apply', task),
      task,
      applied,
    };
  },
};

const remove: Act = {
  name: 'rm',
  lastsMs: 500,
  roles: ['cli'],
  async begin(round) {
    const task = await readyTask(round);
    round.ledger.precious.delete(task);
    return { running: round.ground.start('rm', '--yes', task), task };
  },
};

const cleanup: Act = {
  name: 'cleanup',
  lastsMs: 500,
  roles: ['cli'],
  begin: ({ ground }) => ({ running: ground.start('cleanup', '--yes'), task: null }),
};

const exec: Act = {
  name: 'exec',
  lastsMs: 800,
  roles: ['cli', 'launcher', 'inside'],
  online: true,
  begin({ ground, name }) {
    const script = `echo made > ${name}.txt; curl -ksS -m 6 -o got.bin https://allowed.test/; echo over`;
    const running = ground.start('exec', '--name', name, '--review', 'later', '--', 'sh', '-c', script);
    return { running, task: null, end: () => putAway(ground, name) };
  },
};

const services: Act = {
  name: 'services',
  lastsMs: 1200,
  roles: ['cli', 'launcher', 'inside'],
  begin({ ground, name }) {
    const file = '../../.config/ags/config.yaml';
    const before = ground.machine.read(file);
    ground.machine.write(file, `${before}services:\n  cache: redis\n`);
    const script = 'redis-cli -h cache set a b; sleep 0.3; redis-cli -h cache get a';
    const running = ground.start('exec', '--name', name, '--review', 'later', '--', 'sh', '-c', script);
    return {
      running,
      task: null,
      end() {
        ground.machine.write(file, before);
        return putAway(ground, name);
      },
    };
  },
};

const gateway: Act = {
  name: 'gateway',
  lastsMs: 500,
  roles: ['gateway'],
  online: true,
  begin: ({ ground, name }) => serveGateway(ground, name),
};

const check: Act = {
  name: 'check',
  lastsMs: 1200,
  roles: ['cli', 'launcher', 'inside', 'helper'],
  begin: async (round) => checkTask(round.ground, await readyTask(round), null),
};

const checkedMerge: Act = {
  name: 'merge --check',
  lastsMs: 1500,
  roles: ['cli', 'launcher', 'inside', 'helper'],
  async begin(round) {
    const task = await readyTask(round);
    return checkTask(round.ground, task, (result) => void told(round, result, 'merge', task));
  },
};

const fork: Act = {
  name: 'fork',
  lastsMs: 1500,
  roles: ['server', 'runner', 'launcher', 'inside'],
  begin: async (round) => forkTask(round.ground, await readyTask(round), round.name, goalOf(round.name)),
};

const carryOut: Act = {
  name: 'export',
  lastsMs: 500,
  roles: ['cli', 'helper'],
  begin: async (round) => exportTask(round.ground, await readyTask(round), round.name),
};

const carryIn = (anew: boolean): Act => ({
  name: anew ? 'import anew' : 'import',
  lastsMs: 600,
  roles: ['cli', 'helper'],
  begin: async (round) => importTask(round.ground, await readyTask(round), round.name, anew),
});

/** Acts that need only a sandbox; the engines run these. */
export const ENGINE_ACTS: readonly Act[] = [exec, start, check];
export const ACTS: readonly Act[] = [
  start,
  merge,
  watched,
  exec,
  check,
  send,
  carryIn(false),
  undo,
  restart,
  services,
  fork,
  apply,
  carryOut,
  remove,
  gateway,
  checkedMerge,
  cleanup,
  carryIn(true),
  merge,
];

/** Returns a task with unmerged work; starts one if there is none. */
async function readyTask({ ground, name }: Round): Promise<string> {
  const known = agentTasks(ground).find((task) => stateOf(ground, task) === 'ready');
  if (known !== undefined) return known;
  const task = `${name}-given`;
  const made = await ground.ags('start', task, goalOf(task), ...AGENT);
  if (made.code !== 0) throw new Error(`a start without a fault: ${made.stdout}${made.stderr}`);
  return task;
}

function agentTasks({ stateDir }: Ground): string[] {
  return taskNames(stateDir).filter((name) => hasGoal(join(stateDir, 'tasks', name, 'task.json')));
}

const hasGoal = (file: string): boolean => readIfThere(file)?.includes('"goal":') ?? false;

export function stateOf(ground: Ground, task: string): string | null {
  const text = readIfThere(join(ground.stateDir, 'tasks', task, 'run.json'));
  return text === null ? null : (JSON.parse(text) as { state: string }).state;
}

function lastMerged(ground: Ground): string | null {
  const root = join(ground.stateDir, 'merges');
  const dir = join(root, list(root)[0] ?? '');
  const records = list(dir)
    .filter((name) => /^\d{6}\.json$/.test(name))
    .toSorted()
    .map((name) => JSON.parse(readIfThere(join(dir, name)) ?? '{}') as { kind: string; task: string });
  const open: string[] = [];
  for (const { kind, task } of records)
    if (kind === 'merge') open.push(task);
    else open.pop();
  return open.at(-1) ?? null;
}

type Said = Pick<Result, 'code' | 'stderr'>;

/** A copy or a fork may have merged the same work before: ags then reports that there is nothing to do. */
function told({ ledger }: Round, { code, stderr }: Said, kind: 'merge' | 'undo', task: string): string[] {
  if (code === 0 && !stderr.includes(' already.')) ledger.moves.push({ kind, task });
  return [];
}

async function putAway(ground: Ground, task: string): Promise<string[]> {
  const made = taskNames(ground.stateDir).filter((name) => name.startsWith(task));
  if (made.length === 0) return [];
  const gone = await ground.ags('rm', '--yes', ...made);
  return gone.code === 0 ? [] : [`ags rm ${task}: ${gone.stderr}`];
}

export function takeOut({ machine }: Ground, paths: readonly string[]): void {
  if (paths.length === 0) return;
  const known = machine
    .git('ls-files', '-z', '--', ...paths)
    .split('\0')
    .slice(0, -1);
  if (known.length > 0) machine.git('checkout', '-q', '--', ...known);
  machine.git('clean', '-fdq', '--', ...new Set(paths.map((path) => path.split('/')[0] ?? '')));
}

export const hasBegun = (ground: Ground, task: string): boolean =>
  eventsOf(ground.stateDir, task).some(({ type }) => type === 'run.started');
