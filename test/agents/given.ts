// test/agents/given.ts: shared by the pure tests of adapters: an input for a plan, a driver fed with lines.
import { readFileSync } from 'node:fs';
import type { Agent, AgentInput, AgentIo } from '../../src/agents/agent.ts';
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
    signIn: agent.signIns[0] ?? null,
    endpoint: 'http://127.0.0.1:3129/agent-it',
    ownEndpoint: false,
    settings: [],
    hooks: null,
    ...more,
  };
}

export const LISTENER = {
  command: ['/usr/bin/perl', '-T', '/run/ags/hook'],
  url: 'http://127.0.0.1:3130/hook',
};

/** The recorded output of an agent, several runs in a row. */
export function recorded(name: string): string[] {
  return readFileSync(new URL(`recorded/${name}.jsonl`, import.meta.url), 'utf8')
    .trim()
    .split('\n');
}

/** The recorded output split into runs: each has its own session, or starts with the one it continues. */
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

/** The driver's side of an agent process that ignores input and allows every call. */
export const ioTo = (emit: (event: AgentEvent) => void): AgentIo => ({
  write: () => undefined,
  end: () => undefined,
  emit,
  gate: () => Promise.resolve({ allow: true }),
});

export function eventsOf(
  agent: Agent,
  lines: readonly string[],
  ending: { code?: number; errors?: readonly string[] } = {},
): AgentEvent[] {
  const events: AgentEvent[] = [];
  const driver = agent.drive(ioTo((event) => void events.push(event)));
  for (const line of lines) driver.line(line);
  for (const line of ending.errors ?? []) driver.errorLine(line);
  driver.exited(ending.code ?? 0);
  return events;
}
