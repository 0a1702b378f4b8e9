// test/agent-run/place.ts: a developer's machine on which agents start, run and are awaited.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'vitest';
import type { EventLine } from '../../src/protocol/event.ts';

/** An event with any fields. */
export type AnyEvent = Pick<EventLine, 'seq' | 'at' | 'task' | 'prev'> & {
  readonly type: string;
  readonly [field: string]: unknown;
};
import type { RunFile, TaskFile } from '../../src/protocol/task.ts';
import { createMachine, type Caller, type Machine } from '../harness.ts';

export interface AgentMachine extends Machine {
  /** Starts an agent and waits for the end of its run. */
  runDemo(name: string, goal: string, more?: readonly string[]): Promise<RunFile>;
  task(name: string): TaskFile;
  run(name: string): RunFile;
  events(name: string): AnyEvent[];
  texts(name: string): string[];
  until(name: string, states: readonly RunFile['state'][]): Promise<RunFile>;
  /** Waits for a matching event. */
  event(name: string, type: string, fits?: (event: AnyEvent) => boolean): Promise<AnyEvent>;
  branch(name: string): string[];
}

function endRunner(pid: number): void {
  try {
    if (readFileSync(`/proc/${pid}/cmdline`, 'latin1').includes('__run')) process.kill(pid, 'SIGKILL');
  } catch {
    // It has ended.
  }
}

const OVER = ['ready', 'no-changes', 'failed', 'stopped', 'merged'] as const;
const PATIENCE_MS = 60_000;

export function createAgentMachine(caller: Caller, files?: Record<string, string>): AgentMachine {
  const machine = createMachine(caller, files === undefined ? {} : { files });
  const at = (name: string, file: string): string => join(machine.stateDir, 'tasks', name, file);
  const json = (path: string): unknown => JSON.parse(readFileSync(path, 'utf8'));
  const events = (name: string): AnyEvent[] =>
    existsSync(at(name, 'events.jsonl'))
      ? readFileSync(at(name, 'events.jsonl'), 'utf8')
          .split('\n')
          .slice(0, -1)
          .map((line) => JSON.parse(line) as AnyEvent)
      : [];
  const wait = async <T>(what: string, look: () => T | undefined): Promise<T> => {
    for (const end = Date.now() + PATIENCE_MS; Date.now() < end; await sleep(30)) {
      const found = look();
      if (found !== undefined) return found;
    }
    throw new Error(`timed out waiting for ${what}`);
  };
  const run = (name: string): RunFile => json(at(name, 'run.json')) as RunFile;
  const all: Omit<AgentMachine, keyof Machine> = {
    async runDemo(name, goal, more = []) {
      const done = await machine.ags(['start', name, goal, '--agent', 'demo', '--max-parallel', '64', ...more], {
        timeoutMs: PATIENCE_MS,
      });
      expect(existsSync(at(name, 'run.json')), done.stderr).toBe(true);
      return all.until(name, OVER);
    },
    task: (name) => json(at(name, 'task.json')) as TaskFile,
    run,
    events,
    texts: (name) => events(name).flatMap((event) => (event.type === 'agent.said' ? [String(event['text'])] : [])),
    until: (name, states) =>
      wait(`${name} to be ${states.join(' or ')}`, () => (states.includes(run(name).state) ? run(name) : undefined)),
    event: (name, type, fits = () => true) =>
      wait(`an event ${type} of ${name}`, () => events(name).find((event) => event.type === type && fits(event))),
    branch: (name) => machine.git('ls-tree', '-r', '--name-only', `ags/${name}`).trim().split('\n'),
  };
  const dispose = machine[Symbol.dispose].bind(machine);
  return Object.assign(machine, all, {
    [Symbol.dispose]() {
      // Failed tests may leave running agents.
      for (const name of machine.tasks()) if (existsSync(at(name, 'run.json'))) endRunner(run(name).runner.pid);
      dispose();
    },
  });
}
