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
    expect((await screen.ended()).code).toBe(1);
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

  test('ags merge --patch merges exactly the chosen files and parts, also over later commits', async () => {
    const lines = Array.from({ length: 40 }, (_, i) => `line ${i + 1}\n`).join('');
    using machine = createMachine(caller, { files: { 'a.txt': 'a\n', 'long.txt': lines, 'package.json': '{}\n' } });
    const task = await agentTask(
      machine,
      `echo A > a.txt; sed -i -e 3s/line/LINE/ -e 35s/line/LINE/ long.txt; echo '{ "scripts": { "test": "x" } }' > package.json`,
    );
    machine.write('long.txt', lines.replace('line 20\n', 'user\n'));
    machine.git('-c', 'user.name=Dev', '-c', 'user.email=dev@example.test', 'commit', '-qam', 'mine');
    expect(await machine.ags(['merge', task.id, '--patch'])).toMatchObject({ code: 2 });
    using screen = await openScreen(machine, { columns: 80 });
    screen.type(`ags merge ${task.id} --patch\n`);
    await screen.until(/\[1\/3\] MODIFIED {2}package\.json[\s\S]*\? more >$/);
    screen.press('n');
    await screen.until(/\[2\/3\] MODIFIED {2}a\.txt.*\n.*\? more >$/);
    screen.press('n');
    await screen.until(/\[3\/3\] MODIFIED {2}long\.txt.*\n.*s parts.*\? more >$/);
    screen.press('s');
    await screen.until(/part 1 of 2[\s\S]*\? more >$/);
    screen.press('n');
    await screen.until(/part 2 of 2[\s\S]*\? more >$/);
    screen.press('y');
    await screen.until(/1 file onto main\n {2}MODIFIED {2}long\.txt {2}\(in part\)\nMerge\? \[y\/N\]/);
    screen.type('y\n');
    const { code, shown } = await screen.ended();
    expect([code, shown]).toEqual([0, expect.stringMatching(/Merged 1 file of [^\n]*\n$/)]);
    expect([machine.read('long.txt'), machine.git('status', '--short')]).toEqual([
      lines.replace('line 20\n', 'user\n').replace('line 35\n', 'LINE 35\n'),
      '',
    ]);
  });
});
