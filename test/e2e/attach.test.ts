// test/e2e/attach.test.ts: a person sits down at the terminal of an agent, leaves it running, and comes back.
import { describe, expect, test } from 'vitest';
import { CALLERS } from '../harness.ts';
import { createAgentMachine } from '../tasks/place.ts';
import { openScreen } from './screen.ts';

/** Switches everything on that a program on a terminal may want, and off nothing. */
const GREEDY = String.raw`
printf '\033[?1049h\033[?25l\033[?1h\033=\033[?7l\033[?1002h\033[?1006h\033[?2004h\033[3;9r\033[1;1H'
printf '\033[7mReady for you.\n'
read -r line
printf 'You said %s.\n' "$line" | tee said.txt
read -r line
`;

describe.each(CALLERS)('as %s', (caller) => {
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
    expect(left.shown).toContain('ags: left.\n');
    expect(screen.modes()).toBe(before);

    screen.type('ags attach first');
    screen.press('Enter');
    await screen.until('Ready for you.');
    screen.type('hello');
    screen.press('Enter');
    await screen.until('You said hello.');
    screen.press('Enter');
    expect((await screen.ended()).shown).toContain('ags: it has ended with 0.\n');
    expect(screen.modes()).toBe(before);
    await machine.until('first', ['ready']);
    expect(machine.git('show', 'ags/first:said.txt')).toBe('You said hello.\n');
  });
});
