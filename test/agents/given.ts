// test/agents/given.ts: what the pure tests of adapters have in common: an input for a plan, a driver fed with lines.
import { readFileSync } from 'node:fs';
import type { Agent, AgentInput } from '../../src/agents/agent.ts';
import type { AgentEvent } from '../../src/protocol/agent-event.ts';

export function inputFor(agent: Agent, more: Partial<AgentInput> = {}): AgentInput {
  return {
    program: ['/opt/agent'],
    mode: 'headless',
    prompt: 'Fix the "bug"\nin $HOME',
    home: '/home/agent',
    project: '/work/it',
    task: 'fix-bug',
    session: null,
    newSession: '0f8f4b3e-7a55-4c1e-9a3c-3f1b1c2d4e5f',
    model: null,
    maxTurns: null,
    maxCostMicros: null,
    signIn: agent.signIns[0] ?? null,
    endpoint: 'http://127.0.0.1:3129/agent-it',
    hooks: null,
    ...more,
  };
}

export const LISTENER = {
  command: ['/usr/bin/perl', '-T', '/run/ags/hook'],
  url: 'http://127.0.0.1:3130/hook',
};

/** What an agent has really printed, of several runs one after the other. */
export function recorded(name: string): string[] {
  return readFileSync(new URL(`recorded/${name}.jsonl`, import.meta.url), 'utf8')
    .trim()
    .split('\n');
}

/** The same, run by run: each has a session of its own, or begins with saying which one it goes on with. */
export function recordedRuns(name: string): string[][] {
  const runs: string[][] = [];
  let session: string | undefined;
  for (const line of recorded(name)) {
    const { type, subtype, session_id, sessionID } = JSON.parse(line) as Record<string, string>;
    const now = session_id ?? sessionID ?? session;
    if (type === 'init' || subtype === 'init' || (sessionID !== undefined && now !== session)) runs.push([]);
    session = now;
    runs.at(-1)?.push(line);
  }
  return runs;
}

export function eventsOf(
  agent: Agent,
  lines: readonly string[],
  ending: { code?: number; errors?: readonly string[] } = {},
): AgentEvent[] {
  const events: AgentEvent[] = [];
  const driver = agent.drive({
    write: () => undefined,
    end: () => undefined,
    emit: (event) => void events.push(event),
    gate: () => Promise.resolve({ allow: true }),
  });
  for (const line of lines) driver.line(line);
  for (const line of ending.errors ?? []) driver.errorLine(line);
  driver.exited(ending.code ?? 0);
  return events;
}
