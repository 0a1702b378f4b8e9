// test/hooks/agents.test.ts: hooks from `ags start` to the events of the task, with the demo agent.
// needs: sandbox
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { HookDecided } from '../../src/protocol/hook.ts';
import { createMachine, type Machine, USUAL } from '../harness.ts';

type Line = HookDecided & { readonly type: string };

function decided(machine: Machine): Line[] {
  const file = join(machine.stateDir, 'tasks', machine.tasks()[0] ?? '', 'events.jsonl');
  return readFileSync(file, 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Line)
    .filter(({ type }) => type === 'hook.decided');
}

const start = (machine: Machine) =>
  machine.ags(['start', 'tried', 'Do something', '--agent', 'demo'], { timeoutMs: 120_000 });

describe.each(USUAL)('as %s', (caller) => {
  test("one hook refuses an agent's commands, another runs inside, and the log records both", async () => {
    using machine = createMachine(caller);
    machine.write('.ags/hooks/pre-bash', '#!/bin/sh\necho "not today" >&2\nexit 2\n', 0o755);
    machine.write(
      'ags.yaml',
      'hooks:\n  use: [log]\n  post-writes:\n    - { run: "pwd > \\"$HOME/seen\\"; test -z \\"$AGS_HOOK\\" && test -n \\"$AGS_SANDBOX\\"", inside: true }\n',
    );
    const refused = await start(machine);
    expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining('hooks that you have not approved')]);
    expect(refused.stderr).toContain('ags trust');
    expect(machine.tasks()).toEqual([]);
    expect((await machine.ags(['trust', '--yes'])).code).toBe(0);

    const done = await start(machine);
    const events = decided(machine);
    const commands = events.filter(({ point }) => point === 'pre-bash');
    expect(commands.length, done.stdout + done.stderr).toBeGreaterThan(0);
    expect(new Set(commands.map(({ hook, verdict, mode, reason }) => [hook, verdict, mode, reason].join('|')))).toEqual(
      new Set(['.ags/hooks/pre-bash|refused|enforced|Refused by the hook .ags/hooks/pre-bash: not today']),
    );
    const inside = events.filter(({ point, hook }) => point === 'post-writes' && hook.includes('ags.yaml'));
    expect(inside.map(({ verdict, reason }) => [verdict, reason])).toEqual(inside.map(() => ['allowed', null]));
    expect(inside.length).toBeGreaterThan(0);
    const task = join(machine.stateDir, 'tasks', machine.tasks()[0] ?? '');
    expect(readFileSync(join(task, 'run/home/seen'), 'utf8').trim()).toBe(machine.project);
    const log = readFileSync(join(task, 'actions.jsonl'), 'utf8').trim().split('\n');
    expect(log.length).toBeGreaterThanOrEqual(commands.length + inside.length);
    expect(existsSync(join(task, 'hooks'))).toBe(false);
  }, 200_000);
});
