// test/e2e/ui.full.test.ts: `ags ui` in a real terminal: what it shows, what its keys change, and how it gives the terminal back.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { createAgentMachine } from '../agent-run/place.ts';
import { createMachine, USUAL } from '../harness.ts';
import { signalAgs } from './leftovers.ts';
import { openScreen } from './screen.ts';

const SMALL = { columns: 80, rows: 24 };

test.each(USUAL)(
  'as %s: tasks are followed, answered, allowed a host and merged, each after a confirmation',
  async (caller) => {
    using machine = createAgentMachine(caller);
    using screen = await openScreen(machine, SMALL);
    screen.type('ags ui\n');
    await screen.until('This project has no tasks.');
    // A new task appears by itself, and its escape sequences are text.
    await machine.ags([
      'start',
      'ask',
      'Paint it\nwrite: a.txt x\nask: Red or \u001b[31mblue?\nwait: 600',
      '-a',
      'demo',
      '-d',
    ]);
    await screen.until(/^> needs you +ask .*demo: Paint it$/m);
    expect(screen.text()).toContain('asks: Red or \\x1b[31mblue?');
    // The answer waits for the end of the turn.
    screen.type('r');
    await screen.until('── Answer ask ');
    screen.type('both 日本');
    await screen.until(/^> both 日本$/m);
    screen.press('Enter');
    await screen.until(/ask (has received it|receives it after this turn)\./);

    await machine.ags([
      'start',
      'net',
      'Fetch it\nfetch: https://a.example.com/\nwait: 600',
      '-a',
      'demo',
      '-d',
      '--network',
      'record',
    ]);
    await screen.until(/^. needs you +net /m);
    screen.press('Home');
    await screen.until(/^> needs you +net /m);
    screen.type('n');
    await screen.until(/Which host\?\n\n> {2}Cancel\n {3}a\.example\.com:443 {2}waits/);
    screen.press('Down', 'Enter');
    await screen.until(/^> {2}Cancel\n {3}Allow in this task, until it ends$/m);
    screen.press('Down', 'Enter');
    await screen.until('Allowed a.example.com in net, until it ends.');
    expect((await machine.ags(['net', 'rules', 'net'])).stdout).toContain('a.example.com');

    screen.type('s');
    await screen.until('── Stop net ');
    screen.press('Escape');
    await screen.until(/^> (running|needs you) +net /m);
    screen.press('s', 'Down', 'Enter');
    await screen.until(/^. stopped +net /m);

    await machine.ags(['start', 'work', 'Write it\nwrite: new.txt one\nappend: README.md two', '-a', 'demo', '-d']);
    await screen.until(/^. ready +work /m);
    screen.press('Home', 'Down');
    await screen.until(/^> ready +work /m);
    screen.press('d');
    await screen.until(/^changes of work {2}file 1 of 2[\s\S]*^NEW {7}new\.txt {2}\+1\n@@ [^\n]*\n\+one$/m);
    screen.press('q', 'Enter');
    await screen.until(/^work {2}ready[\s\S]*write new\.txt[\s\S]*^ready$/m);
    screen.press('q', 'm');
    await screen.until(/── Merge work [\s\S]*2 files onto main[\s\S]*> {2}Cancel\n {3}Merge\n/);
    const head = machine.git('rev-parse', 'HEAD');
    screen.type('ake it so y ');
    screen.press('Enter');
    await screen.until(/^> ready +work /m);
    expect(machine.git('rev-parse', 'HEAD')).toBe(head);
    screen.press('m');
    await screen.until(/── Merge work [\s\S]*> {2}Cancel\n/);
    screen.press('Down', 'Enter');
    await screen.until(/Merged 2 files of work into main/);
    expect(machine.read('new.txt')).toBe('one\n');

    // On another terminal size, every row is in its place.
    for (const [columns, rows] of [
      [200, 50],
      [40, 10],
    ] as const) {
      screen.resize(columns, rows);
      await screen.until(new RegExp(`^ags {2}project.{${columns - 30},}[^\\n]*$`, 'm'));
      expect(
        Math.max(
          ...screen
            .text()
            .split('\n')
            .map((line) => line.length),
        ),
      ).toBeLessThanOrEqual(columns);
    }
    screen.type('q');
    expect((await screen.ended()).code).toBe(0);
  },
);

test.each(USUAL)('as %s: the terminal is as before after q, Ctrl-C, Ctrl-Z, a signal and a crash', async (caller) => {
  using machine = createMachine(caller);
  using screen = await openScreen(machine, SMALL);
  const before = screen.modes();
  const opened = async (): Promise<void> => {
    await screen.until('This project has no tasks.');
    expect(screen.modes()).toContain('alternate_on=1 cursor_flag=0');
  };
  const usable = async (): Promise<void> => {
    expect(screen.modes()).toBe(before);
    // Echo and line editing work.
    expect(await screen.run('stty -a | grep -wo -e icanon -e echo -e isig')).toEqual({
      shown: 'isig\nicanon\necho\n',
      code: 0,
    });
    await screen.clear();
  };
  const start = async (): Promise<void> => {
    screen.type('ags ui\n');
    await opened();
  };

  await start();
  screen.type('q');
  expect((await screen.ended()).code).toBe(0);
  await usable();

  await start();
  screen.press('C-c');
  expect((await screen.ended()).code).toBe(0);
  await usable();

  await start();
  screen.press('C-z');
  expect((await screen.ended()).shown).toContain('Stopped');
  await usable();
  screen.type('fg\n');
  await opened();
  screen.type('q');
  expect((await screen.ended()).code).toBe(0);
  await usable();

  for (const [signal, code] of [
    ['TERM', 143],
    ['HUP', 129],
  ] as const) {
    await start();
    signalAgs(machine, signal);
    expect((await screen.ended()).code).toBe(code);
    await usable();
  }

  const script = join(machine.home, 'crash.mjs');
  const module = fileURLToPath(new URL('../../dist/cli/ui/screen.js', import.meta.url));
  writeFileSync(
    script,
    `import { openScreen } from ${JSON.stringify(module)};
const screen = openScreen({ stdin: process.stdin, stdout: process.stdout, colour: true }, { key() { throw new Error('it broke'); }, redraw() {} });
screen.show([[{ text: 'drawn', styles: [] }]], null);`,
  );
  screen.type(`'${process.execPath}' ${script}\n`);
  await screen.until('drawn');
  screen.type('x');
  const crashed = await screen.ended();
  expect([crashed.code, crashed.shown]).toEqual([1, expect.stringContaining('Error: it broke')]);
  await usable();

  const piped = await screen.run('ags ui | cat; ags ui < /dev/null; TERM=dumb ags ui');
  expect(piped.code).toBe(2);
  expect(piped.shown.match(/ags ui needs a terminal|TERM is dumb/g)).toHaveLength(3);
  screen.type('NO_COLOR=1 ags ui\n');
  await opened();
});
