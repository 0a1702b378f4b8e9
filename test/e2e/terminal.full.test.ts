// test/e2e/terminal.full.test.ts: on a terminal a sandboxed command behaves as in the user's shell.
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { CALLERS, createMachine, type Machine, ONE } from '../harness.ts';
import { leftovers, signalAgs } from './leftovers.ts';
import { openScreen, type Screen } from './screen.ts';

describe.each(CALLERS)('as %s', (caller) => {
  let machine: Machine;
  let screen: Screen;
  beforeAll(async () => {
    machine = createMachine(caller, {
      files: { 'a.txt': Array.from({ length: 200 }, (_, i) => `line ${i + 1}\n`).join('') },
    });
    await machine.ags(['exec', '--', 'true']);
  });
  beforeEach(async () => {
    screen = await openScreen(machine);
  });
  afterEach(() => screen[Symbol.dispose]());
  afterAll(() => machine[Symbol.dispose]());

  test.each([
    ['all three', '', '0 0 0'],
    ['all but stdin', ' < /dev/null', '1 0 0'],
    ['all but stdout', ' | cat', '0 1 0'],
    ['all but stderr', ' 2> /dev/null', '0 0 1'],
    ['stderr alone', ' < /dev/null | cat', '1 1 0'],
    ['none', ' < /dev/null 2>&1 | cat', '1 1 1'],
  ])('the command’s streams are terminals exactly where the user’s are: %s', async (_name, redirection, expected) => {
    const { shown, code } = await screen.run(
      `ags exec -- sh -c 'test -t 0; a=$?; test -t 1; b=$?; test -t 2; echo $a $b $?'${redirection}`,
    );
    expect({ shown, code }).toEqual({ shown: `${expected}\n`, code: 0 });
  });

  test('typed text reaches the command, and Ctrl-D ends its input', async () => {
    screen.type("ags exec -- sh -c 'echo ready; cat | tr a-z A-Z'\n");
    await screen.until(/^ready$/m);
    screen.type('one line');
    screen.press('Enter', 'C-d');
    expect(await screen.ended()).toEqual({ shown: 'ready\none line\nONE LINE\n', code: 0 });
  });

  test('a command on a terminal can open /dev/stdout, /dev/stderr and /dev/tty', async () => {
    expect(
      await screen.run("ags exec -- sh -c 'echo out > /dev/stdout; echo err > /dev/stderr; echo tty > /dev/tty'"),
    ).toEqual({ shown: 'out\nerr\ntty\n', code: 0 });
  });

  test('a command with redirected streams can write to /dev/tty', async () => {
    expect(await screen.run("ags exec -- sh -c 'echo seen > /dev/tty' < /dev/null > /dev/null")).toEqual({
      shown: 'seen\n',
      code: 0,
    });
  });

  test('the command gets the window size, and SIGWINCH when it changes', async () => {
    screen.type('ags exec -- sh -c \'trap "stty size" WINCH; stty size; while :; do sleep 0.05; done\'\n');
    await screen.until(/^40 120$/m);
    screen.resize(100, 30);
    await screen.until(/^30 100$/m);
    screen.resize(120, 40);
    await screen.until(/^40 120\n[\s\S]*^40 120$/m);
    screen.press('C-c');
    expect((await screen.ended()).code).toBe(130);
  });

  test('Ctrl-C reaches the command and not the sandbox', async () => {
    screen.type('ags exec -- sh -c \'trap "echo caught; exit 5" INT; echo ready; while :; do sleep 0.05; done\'\n');
    await screen.until(/^ready$/m);
    screen.press('C-c');
    expect(await screen.ended()).toEqual({ shown: 'ready\n^Ccaught\n', code: 5 });
  });

  test('Ctrl-C and Ctrl-\\ end a command without a handler, with the exit code of a shell', async () => {
    screen.type("ags exec -- sh -c 'echo ready; exec sleep 77777'\n");
    await screen.until(/^ready$/m);
    screen.press('C-c');
    expect((await screen.ended()).code).toBe(130);
    screen.type("ags exec -- sh -c 'echo again; exec sleep 77777'\n");
    await screen.until(/^again$/m);
    screen.press('C-\\');
    expect((await screen.ended()).code).toBe(131);
    expect(await leftovers(machine)).toEqual([]);
  });

  test('Ctrl-C reaches a command whose input is a pipe', async () => {
    screen.type(
      'sleep 77777 | ags exec -- sh -c \'trap "echo caught; exit 5" INT; echo ready; while :; do sleep 0.05; done\'\n',
    );
    await screen.until(/^ready$/m);
    screen.press('C-c');
    expect(await screen.ended()).toMatchObject({ code: 5 });
  });

  test('a shell has job control', async () => {
    screen.type('ags shell bash --norc\n');
    await screen.until(/bash-[\d.]+[$#]$/);
    screen.type('sleep 77777\n');
    await screen.until(/sleep 77777$/m);
    await new Promise((resolve) => setTimeout(resolve, 300));
    // Ctrl-Z has no effect until the job is in the foreground, so it is repeated.
    const again = setInterval(() => screen.press('C-z'), 2000);
    screen.press('C-z');
    await screen.until(/\[1\]\+ +Stopped +sleep 77777/).finally(() => clearInterval(again));
    screen.type('bg; jobs\n');
    await screen.until(/\[1\]\+ +Running +sleep 77777/);
    screen.type('fg\n');
    await screen.until(/^sleep 77777$/m);
    screen.press('C-c');
    await screen.until(/\^C/);
    screen.type('echo "status $?"; exit 9\n');
    await screen.until('status 130');
    expect((await screen.ended()).code).toBe(9);
  });

  test('ags shell without a command starts the user’s shell', async () => {
    screen.type('ags shell\n');
    await screen.until(/[$#]$/);
    screen.type('echo "$0 in $PWD"; exit\n');
    expect((await screen.ended()).shown).toContain(`/bin/bash in ${machine.project}`);
  });

  test.each([
    ['vim', 'vim -u NONE -N a.txt', /^line 1$[\s\S]*line 39$/m, [':q', 'Enter']],
    ['less', 'less a.txt', /^line 1$[\s\S]*^line 39$/m, ['q']],
    ['top', 'top', /load average/, ['q']],
  ])('a full-screen program works and restores the screen: %s', async (_name, command, seen, leave) => {
    const before = (await screen.run('echo before; stty -a')).shown;
    screen.type(`ags shell ${command}\n`);
    await screen.until(seen);
    screen.press(...leave);
    expect(await screen.ended()).toMatchObject({ code: 0 });
    expect(screen.text()).toContain('before\n');
    expect((await screen.run('echo before; stty -a')).shown).toBe(before);
  });

  test.each([
    ['a command that leaves the terminal raw and dies', "ags exec -- sh -c 'stty raw -echo; kill -9 $$'", 137],
    ['a command that does not exist', 'ags exec -- no-such-command', 127],
  ])('the terminal is restored after %s', async (_name, line, code) => {
    const before = (await screen.run('stty -a')).shown;
    expect((await screen.run(line)).code).toBe(code);
    expect((await screen.run('stty -a')).shown).toBe(before);
    expect(await leftovers(machine)).toEqual([]);
  });

  test.each([
    ['TERM', 143],
    ['KILL', 137],
  ])('the terminal is restored after ags was ended by SIG%s', async (signal, code) => {
    const before = (await screen.run('stty -a')).shown;
    screen.type("ags exec -- sh -c 'stty raw -echo; echo ready; exec sleep 77777'\n");
    await screen.until(/^ready/m);
    signalAgs(machine, signal);
    expect((await screen.ended()).code).toBe(code);
    expect((await screen.run('stty -a')).shown).toBe(before);
    expect(await leftovers(machine)).toEqual([]);
  });

  test('long output arrives completely', async () => {
    const { shown } = await screen.run('ags exec -- seq 1 15000', 30_000);
    expect(shown.trim().split('\n')).toEqual(Array.from({ length: 15_000 }, (_, i) => String(i + 1)));
  });

  test('a background command runs without the terminal, and gets it back with fg', async () => {
    const { shown } = await screen.run("ags exec -- sh -c 'echo from the background' & wait; jobs");
    expect(shown).toContain('from the background\n');
    expect(shown).not.toContain('Stopped');
    await screen.run('ags exec -- sh -c \'echo ready; read line; echo "<$line>"\' &');
    await screen.until(/^.*ready$/m);
    screen.type('fg\n');
    await screen.until(/^ags exec .*read line/m);
    screen.type('typed\n');
    expect((await screen.ended()).shown).toContain('\n<typed>\n');
  });

  test('closing the window ends its command, and leaves nothing behind', async () => {
    const before = machine.tasks();
    const other = await openScreen(machine, { name: 'other' });
    other.type("ags exec -- sh -c 'echo ready; exec sleep 77777'\n");
    await other.until(/^ready$/m);
    other[Symbol.dispose]();
    expect(await leftovers(machine)).toEqual([]);
    await expect.poll(() => machine.tasks(), { timeout: 30_000 }).toEqual(before);
  });

  test('closing the window keeps the changes for a review', async () => {
    const before = machine.tasks();
    for (const [name, line, seen] of [
      ['running', "ags exec --name closed -- sh -c 'echo new > new.txt; echo ready; exec sleep 77777'", /^ready$/m],
      ['asking', 'ags exec --name closed -- cp a.txt new.txt', /\? more >$/m],
    ] as const) {
      const other = await openScreen(machine, { name });
      other.type(`${line}\n`);
      await other.until(seen);
      other[Symbol.dispose]();
      expect(await leftovers(machine)).toEqual([]);
      const task = machine.tasks().find((one) => !before.includes(one)) ?? '';
      await expect
        .poll(() => machine.ags(['review', task, '--json']), { timeout: 30_000 })
        .toMatchObject({
          code: 0,
          stdout: expect.stringContaining('"path":"new.txt"') as string,
        });
      expect(await machine.ags(['review', task, '--discard-all'])).toMatchObject({ code: 0 });
    }
    expect(machine.tasks()).toEqual(before);
  });
});

test('ags shell without a terminal suggests ags exec', async () => {
  using machine = createMachine(ONE);
  expect(await machine.ags(['shell'])).toEqual({
    code: 2,
    signal: null,
    stdout: '',
    stderr: 'ags: ags shell needs a terminal.\n     In a script, use: ags exec -- <command>\n',
  });
});
