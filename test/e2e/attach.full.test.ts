// test/e2e/attach.full.test.ts: a person sits down at the terminal of an agent, leaves it running, and comes back.
import { describe, expect, test } from 'vitest';
import { USUAL } from '../harness.ts';
import { createAgentMachine } from '../agent-run/place.ts';
import { openScreen } from './screen.ts';

/** Switches everything on that a program on a terminal may want, and off nothing. */
const GREEDY = String.raw`
printf '\033[?1049h\033[?25l\033[?1h\033=\033[?7l\033[?1002h\033[?1006h\033[?2004h\033[3;9r\033[1;1H'
printf '\033[7mReady for you.\n'
read -r line
printf 'You said %s.\n' "$line" | tee said.txt
read -r line
`;

const THIEF = String.raw`printf '\033]52;c;dGFrZW4=\007\033Ptmux;\033\033]52;c;dGFrZW4=\007\033\\printed\n'`;

const TIDY = `
trap 'echo bye > bye.txt; exit 0' HUP
echo Ready for you.
while :; do read -r line; done
`;

describe.each(USUAL)('as %s', (caller) => {
  test('whoever leaves has their own terminal as it was, and finds all of it again', async () => {
    using machine = createAgentMachine(caller, { 'greedy.sh': GREEDY });
    using screen = await openScreen(machine);
    expect(await screen.run('ags start first "Wait." --agent "sh greedy.sh" -i')).toMatchObject({ code: 0 });
    await machine.until('first', ['running']);
    const before = screen.modes();
    screen.type('ags attach first');
    screen.press('Enter');
    await screen.until('Ready for you.');
    expect(screen.modes()).not.toBe(before);
    screen.press('C-]');
    const left = await screen.ended();
    expect(left).toMatchObject({ code: 0 });
    expect(left.shown).toContain('ags: Detached; the agent keeps running. Reattach: ags attach first\n');
    expect(screen.modes()).toBe(before);

    screen.type('ags attach first');
    screen.press('Enter');
    await screen.until('Ready for you.');
    screen.type('hello');
    screen.press('Enter');
    await screen.until('You said hello.');
    screen.press('Enter');
    expect((await screen.ended()).shown).toContain('ags: It exited with 0.\n');
    expect(screen.modes()).toBe(before);
    await machine.until('first', ['ready']);
    expect(machine.git('show', 'ags/first:said.txt')).toBe('You said hello.\n');
  });

  test('A121: nothing at a terminal inside reaches the clipboard, by any of the ways to sit at it', async () => {
    using machine = createAgentMachine(caller, { 'thief.sh': `${THIEF}\nread -r line\n`, 'once.sh': THIEF });
    using screen = await openScreen(machine);
    // The terminal itself would take it.
    expect(await screen.run('sh once.sh')).toMatchObject({ code: 0 });
    expect(screen.clipboard()).toBe('taken\n');
    screen.emptyClipboard();
    expect((await screen.run('ags exec -- sh once.sh')).shown).toContain('printed');
    expect(await screen.run('ags start first "Wait." --agent "sh thief.sh" -i -d')).toMatchObject({ code: 0 });
    await machine.until('first', ['running']);
    for (const command of ['ags shell first', 'ags attach first']) {
      screen.type(command);
      screen.press('Enter');
      await screen.until('the agent keeps running');
      if (command.includes('shell')) {
        screen.type('sh once.sh; echo "sta""ys"');
        screen.press('Enter');
        await screen.until('stays');
      } else await screen.until('printed');
      screen.press('C-]');
      await screen.ended();
    }
    expect(screen.clipboard()).toBe('');
  });

  test('a program at its terminal is hung up when the task is stopped, and can put its things in order', async () => {
    using machine = createAgentMachine(caller, { 'tidy.sh': TIDY });
    expect(
      await machine.ags(['start', 'first', 'Wait.', '--agent', 'sh tidy.sh', '--interactive', '--detach']),
    ).toMatchObject({ code: 0 });
    using screen = await openScreen(machine);
    await machine.until('first', ['running']);
    screen.type('ags attach first');
    screen.press('Enter');
    await screen.until('Ready for you.');
    expect(await machine.ags(['stop', 'first'])).toMatchObject({ code: 0 });
    expect((await screen.ended()).shown).toContain('ags: It exited with 0.\n');
    await machine.until('first', ['stopped']);
    expect(machine.git('show', 'ags/first:bye.txt')).toBe('bye\n');
  });
});
