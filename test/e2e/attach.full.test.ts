// test/e2e/attach.full.test.ts: a user attaches to the terminal of an agent, detaches while it runs, and attaches again.
import { describe, expect, test } from 'vitest';
import { USUAL } from '../harness.ts';
import { createAgentMachine } from '../agent-run/place.ts';
import { openScreen } from './screen.ts';

/** A program that switches on every terminal mode and switches none off. */
const GREEDY = String.raw`
stty -echo -icanon min 0 time 5
printf '\033[>q\033[c'; cat > answers.txt
stty sane
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
  test('detaching restores the user’s terminal, and attaching again restores the agent’s', async () => {
    using machine = createAgentMachine(caller, { 'greedy.sh': GREEDY });
    using screen = await openScreen(machine);
    const before = screen.modes();
    // It waits for its terminal, and attaches to it.
    screen.type('ags start first "Wait." --agent "sh greedy.sh" -i');
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
    // The terminal has answered no question a second time.
    await screen.until('You said hello.');
    screen.press('Enter');
    expect((await screen.ended()).shown).toContain('ags: It exited with 0.\n');
    expect(screen.modes()).toBe(before);
    await machine.until('first', ['ready']);
    expect(machine.git('show', 'ags/first:said.txt')).toBe('You said hello.\n');
    expect(machine.git('show', 'ags/first:answers.txt')).toContain('tmux');
  });

  test('attaching waits for a task in the queue, and says how a task ended that got no terminal', async () => {
    using machine = createAgentMachine(caller, { 'tidy.sh': TIDY });
    using screen = await openScreen(machine);
    await machine.ags(['start', 'busy', 'wait: 600', '-a', 'demo', '-d', '--max-parallel', '1']);
    await machine.event('busy', 'agent.started');
    for (const name of ['next', 'last'])
      await machine.ags(['start', name, 'x', '-a', 'sh tidy.sh', '-i', '-d', '--max-parallel', '1']);
    screen.type('ags attach last');
    screen.press('Enter');
    await screen.until('ags: last is queued; its terminal opens when the agent starts. Ctrl-C leaves.');
    await screen.until('     Waiting: 1 of 1 slots used, 1 task ahead');
    await machine.ags(['stop', 'last']);
    const ended = await screen.ended();
    expect(ended.shown).toContain('ags: last has ended: stopped. Stopped before it started.');
    expect(ended.code).toBe(3);
    screen.type('ags attach next');
    screen.press('Enter');
    await screen.until('ags: next is queued');
    await machine.ags(['stop', 'busy']);
    await screen.until('Ready for you.');
    screen.press('C-]');
    expect(await screen.ended()).toMatchObject({ code: 0 });
  });

  test('A121: no program on a terminal inside reaches the clipboard, with any command that attaches to it', async () => {
    using machine = createAgentMachine(caller, { 'thief.sh': `${THIEF}\nread -r line\n`, 'once.sh': THIEF });
    using screen = await openScreen(machine);
    // The user's terminal itself supports the clipboard.
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

  test('a program on the terminal gets SIGHUP when the task is stopped, and can clean up', async () => {
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
