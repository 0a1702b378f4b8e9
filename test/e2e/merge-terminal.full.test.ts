// test/e2e/merge-terminal.full.test.ts: a merge on a terminal shows a summary and asks; no pager or editor is started.
import { appendFileSync, mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { agentTask } from '../agent-run/agent-task.ts';
import { evilSettings } from '../attacks/evil-git.ts';
import { createMachine, giveTo, USUAL } from '../harness.ts';
import { openScreen } from './screen.ts';

describe.each(USUAL)('as %s', (caller) => {
  test('A90: it asks first, "no" changes nothing, "yes" merges, and no other program is started', async () => {
    using machine = createMachine(caller);
    const task = await agentTask(machine, 'echo new > new.txt');
    const ran = join(machine.root, 'ran');
    mkdirSync(ran);
    giveTo(ran, machine.uid);
    appendFileSync(join(machine.project, '.git/config'), evilSettings(ran).replace('repositoryformatversion = 1', ''));
    using screen = await openScreen(machine);
    screen.type(`ags merge ${task.id}\n`);
    await screen.until(/NEW +new\.txt[\s\S]*Merge\? \[y\/N\]/);
    screen.type('n\n');
    expect((await screen.ended()).code).toBe(130);
    expect(machine.has('new.txt')).toBe(false);
    // Ctrl-C and Ctrl-D answer no, in one line.
    for (const key of ['\u0003', '\u0004']) {
      await screen.clear();
      screen.type(`ags merge ${task.id}\n`);
      await screen.until(/Merge\? \[y\/N\]/);
      screen.type(key);
      const { code, shown } = await screen.ended();
      expect([code, shown.trim().split('\n').at(-1)]).toEqual([130, 'ags: Cancelled.']);
    }
    await screen.clear();
    screen.type(`ags diff ${task.id}\n`);
    expect((await screen.ended()).code).toBe(0);
    await screen.clear();
    screen.type(`ags merge ${task.id}\n`);
    await screen.until(/Merge\? \[y\/N\]/);
    screen.type('y\n');
    expect((await screen.ended()).code).toBe(0);
    expect([machine.read('new.txt'), readdirSync(ran)]).toEqual(['new\n', []]);
  });
});
