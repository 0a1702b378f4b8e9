// test/agents/mangle.ts: breaks lines of agents at random: cuts them, changes the types of values, removes keys.
import { expect } from 'vitest';
import type { Agent } from '../../src/agents/agent.ts';
import type { AgentEvent } from '../../src/protocol/agent-event.ts';
import { ioTo } from './given.ts';

const ODD = [
  null,
  0,
  -1,
  1e300,
  '',
  'x',
  true,
  [],
  {},
  [null],
  [[]],
  { type: 'text' },
  { error: {} },
  '\u0000\u001b[31m',
];

/** Expects that on any output the driver does not throw and emits agent.finished exactly once. */
export function expectToWithstand(agent: Agent, lines: readonly string[], rounds: number): void {
  const random = seeded(20_261_116);
  for (let round = 0; round < rounds; round++) {
    const events: AgentEvent[] = [];
    const driver = agent.drive(ioTo((event) => void events.push(event)));
    driver.start('a goal');
    for (const line of lines) {
      driver.line(random() < 0.5 ? mangled(line, random) : line);
      if (random() < 0.1) driver.errorLine(mangled(line, random));
    }
    driver.exited(Math.floor(random() * 256));
    driver.exited(0);
    expect(events.filter(({ type }) => type === 'agent.finished')).toHaveLength(1);
    // Events are plain JSON values.
    expect(JSON.parse(JSON.stringify(events))).toEqual(events);
    for (const event of events) if (event.type === 'tool.finished') expect(typeof event.id).toBe('string');
  }
}

function mangled(line: string, random: () => number): string {
  if (random() < 0.2) return line.slice(0, Math.floor(random() * line.length));
  try {
    return JSON.stringify(replaced(JSON.parse(line), random));
  } catch {
    return line;
  }
}

function replaced(value: unknown, random: () => number): unknown {
  if (random() < 0.08) return ODD[Math.floor(random() * ODD.length)];
  if (Array.isArray(value)) return value.map((one) => replaced(one, random));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(() => random() > 0.05)
      .map(([key, one]) => [key, replaced(one, random)]),
  );
}

function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}
