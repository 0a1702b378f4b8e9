// test/cli/goal-editor.test.ts: a goal from the user's editor, and what becomes of its text.
// needs: sandbox
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { goalIn } from '../../src/cli/goal-editor.ts';
import { createAgentMachine, type AgentMachine } from '../agent-run/place.ts';
import { ONE } from '../harness.ts';
import { onTerminal } from './on-terminal.ts';

/** An editor that puts a text before what the file has, as a person does. */
function editor(machine: AgentMachine, text: string, status = 0): Record<string, string> {
  const old = '"$(cat "$2")"';
  machine.write('../my edit.sh', `printf '%s\\n%s\\n' '${text}' ${old} > "$2.new"; mv "$2.new" "$2"; exit ${status}\n`);
  return { EDITOR: 'false', VISUAL: `sh "${join(machine.home, 'code/my edit.sh')}" argument` };
}
const drafts = (machine: AgentMachine): string[] => {
  const dir = join(machine.stateDir, 'drafts');
  return existsSync(dir) ? readdirSync(dir).map((name) => join(dir, name, 'goal.md')) : [];
};

test('start opens the editor on a terminal, and an empty goal starts and keeps nothing', async () => {
  using machine = createAgentMachine(ONE);
  const begun = onTerminal(machine, ['start', '-a', 'demo', '-d'], { env: editor(machine, 'write: a.txt x') });
  expect(begun.code, begun.screen).toBe(0);
  const [name = ''] = machine.tasks();
  expect([machine.task(name).goal?.text, drafts(machine)]).toEqual(['write: a.txt x', []]);
  await machine.until(name, ['ready', 'failed']);
  const more = onTerminal(machine, ['start', 'named', '"say: more"', '--edit', '-a', 'demo', '-d'], {
    env: editor(machine, 'say: before'),
  });
  expect(more.code, more.screen).toBe(0);
  expect(machine.task('named').goal?.text).toBe('say: before\nsay: more');
  const empty = onTerminal(machine, ['start', '-a', 'demo'], { env: { VISUAL: '', EDITOR: 'true' } });
  expect([empty.code, empty.screen.trim()]).toEqual([130, 'ags: The goal is empty; nothing was started.']);
  expect([machine.tasks().length, drafts(machine)]).toEqual([2, []]);
  await machine.until('named', ['no-changes', 'failed']);
});

test('the text is kept if the start or the editor fails, and by a dry run', () => {
  using machine = createAgentMachine(ONE);
  for (const [status, args, code, says] of [
    [0, ['-a', 'nosuch'], 2, 'There is no agent called "nosuch"'],
    [1, ['-a', 'demo'], 2, 'ended with exit code 1. Nothing was started.'],
    [0, ['-a', 'demo', '--dry-run'], 0, '1 goal; nothing was started.'],
  ] as const) {
    const before = drafts(machine);
    const run = onTerminal(machine, ['start', ...args], { env: editor(machine, '# Login\n\nFix it', status) });
    expect(run.screen).toContain(says);
    const [file = ''] = drafts(machine).filter((one) => !before.includes(one));
    expect(run.screen).toContain(`Your goal is kept in ${file}. To use it: ags start "$(cat ${file})"`);
    expect([run.code, readFileSync(file, 'utf8'), statSync(file).mode & 0o777]).toEqual([
      code,
      '# Login\n\nFix it\n',
      0o600,
    ]);
  }
  expect(machine.tasks()).toEqual([]);
});

test('without a terminal there is no editor', async () => {
  using machine = createAgentMachine(ONE);
  const env = editor(machine, 'write: a.txt x');
  expect(await machine.ags(['start', '-a', 'demo'], { env })).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('What should the agent do?') as string,
  });
  expect(await machine.ags(['start', '--edit', '-a', 'demo'], { env })).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('An editor needs a terminal.') as string,
  });
  expect(machine.tasks()).toEqual([]);
});

test('the template is no part of the goal, and headings of the goal are', () => {
  const template = '\n# ------------------------ >8 ------------------------\n# An empty goal starts nothing.\n';
  expect([goalIn(template), goalIn(`# Goal\n\n- one\r\n${template}`)]).toEqual(['', '# Goal\n\n- one']);
  expect(goalIn('a\n# Write the goal for the agent above this line, then save and close the editor.\n')).toBe('a');
});
