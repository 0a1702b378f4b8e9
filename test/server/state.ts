// test/server/state.ts: creates tasks as files, without sandboxes, with logs that grow on demand.
import { spawn } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { giveTo, type Machine } from '../harness.ts';
import { identityOf } from '../../src/lib/process/liveness.ts';
import { openEvents, type EventLog } from '../../src/store/events.ts';

/** A live process that does nothing and may be killed. */
const RUNNER = spawn('cat', [], { stdio: ['pipe', 'ignore', 'ignore'] });
// It reads our end of the pipe, so it exits with us.
RUNNER.unref();
(RUNNER.stdin as unknown as { unref(): void }).unref();

export interface PaperTask {
  readonly id: string;
  readonly events: EventLog;
  readonly directory: string;
}

export function paperTask(
  machine: Pick<Machine, 'stateDir' | 'project' | 'home' | 'uid'>,
  id: string,
  more: { live?: boolean; goal?: string; startedAtMs?: number } = {},
): PaperTask {
  const directory = join(machine.stateDir, 'tasks', id);
  mkdirSync(directory, { recursive: true });
  const live = more.live !== false;
  const base = '0'.repeat(40);
  const goal = {
    text: more.goal ?? `Do ${id}`,
    agent: 'demo',
    interactive: false,
    base,
    baseRef: 'refs/heads/main',
    maxSeconds: null,
    maxCostMicros: null,
    maxTurns: null,
    parallel: 4,
    flags: {},
  };
  const write = (name: string, value: object): void => writeFileSync(join(directory, name), JSON.stringify(value));
  write('task.json', {
    version: 1,
    id,
    name: id,
    kind: 'agent',
    goal,
    project: machine.project,
    git: true,
    command: ['demo'],
    createdAt: new Date(0).toISOString(),
  });
  write('run.json', {
    version: 1,
    state: live ? 'running' : 'no-changes',
    startedAtMs: more.startedAtMs ?? 1_000_000,
    ...(live ? {} : { endedAtMs: 2_000_000 }),
    exitCode: null,
    label: 'on paper',
    workspace: 'overlay',
    hidden: [],
    revealed: [],
    base,
    objectFormat: 'sha1',
    runner: identityOf(RUNNER.pid ?? 0),
    user: { uid: 0, gid: 0 },
    settled: [],
    ignoredDiscarded: false,
    number: 1,
    result: null,
  });
  const events = openEvents(join(directory, 'events.jsonl'), id, () => new Date(0));
  giveTo(machine.home, machine.uid);
  return { id, events, directory };
}
