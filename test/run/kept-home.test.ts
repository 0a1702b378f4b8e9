// test/run/kept-home.test.ts: homes that stay between tasks.
// needs: sandbox
import { existsSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { createAgentMachine } from '../agent-run/place.ts';
import { CALLERS, giveTo, ONE, USUAL, type Machine, type Result } from '../harness.ts';

const sh = (machine: Machine, script: string, more: readonly string[] = ['--home', 'project']): Promise<Result> =>
  machine.ags(['exec', ...more, '--', 'sh', '-c', script]);

/** A second project of the same user, with the same name. */
function otherProject(machine: Machine): string {
  const other = join(machine.home, 'code/other', basename(machine.project));
  mkdirSync(other, { recursive: true });
  giveTo(join(machine.home, 'code/other'), machine.uid);
  return other;
}

function userConfig(machine: Machine, text: string): void {
  const directory = join(machine.home, '.config/ags');
  mkdirSync(directory, { recursive: true });
  writeFileSync(join(directory, 'config.yaml'), text);
  giveTo(join(machine.home, '.config'), machine.uid);
}

describe.each(USUAL)('as %s', (caller) => {
  test('a kept home has what the last task left, for this project alone, and the real home has none of it', async () => {
    using machine = createAgentMachine(caller);
    const left = await sh(
      machine,
      'mkdir -p ~/.local/bin && echo "echo tool" > ~/.local/bin/tool && chmod +x ~/.local/bin/tool',
    );
    expect(left).toMatchObject({ code: 0, stderr: '' });
    expect((await sh(machine, 'tool; echo "$PATH" | grep -o "[^:]*$"')).stdout).toBe(
      `tool\n${machine.home}/.local/bin\n`,
    );
    const find = 'test -e ~/.local/bin/tool && echo there || echo empty';
    expect((await sh(machine, find, [])).stdout).toBe('empty\n');
    const elsewhere = { cwd: otherProject(machine) };
    expect((await machine.ags(['exec', '--home', 'project', '--', 'sh', '-c', find], elsewhere)).stdout).toBe(
      'empty\n',
    );
    expect(existsSync(join(machine.home, '.local/bin'))).toBe(false);
    const plan = await machine.ags(['plan', '--home', 'project']);
    expect(plan.stdout).toContain('home kept: what one task leaves, the next one finds');
  });

  test('one task at a time has it: another gets an empty home, and reset waits', async () => {
    using machine = createAgentMachine(caller);
    const agent = ['-a', 'demo', '--home', 'project', '--max-parallel', '9'];
    await machine.ags(['start', 'first', 'say: here // run: touch ~/mine // wait: 600', ...agent, '-d']);
    await machine.event('first', 'tool.finished');
    expect(machine.run('first')).toMatchObject({ label: expect.stringContaining('home kept') as string });

    const beside = await sh(machine, 'ls ~; touch ~/theirs');
    expect(beside.stdout).toBe('code\n');
    expect(beside.stderr).toContain('Home: an empty one, because first is using the kept home.');
    expect(await machine.ags(['home', 'reset', '--yes'])).toMatchObject({
      code: 7,
      stderr: expect.stringContaining('first is running in this home.') as string,
    });
    expect((await machine.ags(['home'])).stdout).toContain('in use by first');

    await machine.ags(['stop', 'first']);
    await machine.until('first', ['stopped', 'ready', 'no-changes']);
    expect((await sh(machine, 'ls ~')).stdout).toBe('code\nmine\n');
    expect(await machine.ags(['home', 'reset'])).toMatchObject({ code: 2 });
    expect(await machine.ags(['home', 'reset', '--yes'])).toMatchObject({ code: 0 });
    expect((await sh(machine, 'ls ~')).stdout).toBe('code\n');
  });

  test('a continued task keeps the home that its conversation is in, and the checks of a merge never see it', async () => {
    using machine = createAgentMachine(caller, {
      'a.txt': 'a',
      'ags.yaml': 'checks: ["test ! -e $HOME/mine"]\n',
    });
    await machine.runDemo('work', 'run: touch ~/mine // write: b.txt x', ['--home', 'project']);
    expect(await machine.ags(['check', 'work'])).toMatchObject({ code: 0 });
    // The home is taken by somebody else meanwhile.
    await machine.ags(['start', 'other', 'say: x // wait: 600', '-a', 'demo', '--home', 'project', '-d']);
    await machine.event('other', 'agent.said');
    await machine.ags(['send', 'work', 'run: ls ~']);
    expect(await machine.until('work', ['failed'])).toMatchObject({
      reason: expect.stringContaining('Its conversation is in the kept home, which other is using.') as string,
    });
    await machine.ags(['stop', 'other']);
    await machine.until('other', ['stopped', 'no-changes', 'ready']);
    await machine.ags(['send', 'work', 'run: ls ~']);
    await machine.event('work', 'tool.finished', ({ output }) => output === 'code\nmine\n');
    await machine.until('work', ['ready']);
  });

  test('whatever a task leaves there, the host neither follows nor opens it', async () => {
    using machine = createAgentMachine(caller);
    const outside = join(machine.home, 'outside');
    mkdirSync(outside);
    giveTo(outside, machine.uid);
    await sh(
      machine,
      `mkfifo ~/fifo; ln -s /etc ~/etc; ln -s ${outside} ~/out; mkdir ~/closed; touch ~/closed/x; chmod 0 ~/closed; mkdir -p ~/deep; cd ~/deep && i=0; while [ $i -lt 30 ]; do mkdir ${'d'.repeat(200)} && cd ${'d'.repeat(200)}; i=$((i+1)); done; true`,
    );
    expect((await machine.ags(['home', '--all'])).code).toBe(0);
    // Mount points of the next sandbox are made in the home.
    await sh(machine, `cd /; chmod -R u+w ~/code; rm -rf ~/code 2>/dev/null; mv ~/code ~/moved 2>/dev/null; true`);
    expect(await machine.ags(['home', 'reset', '--yes'])).toMatchObject({ code: 0 });
    expect((await sh(machine, 'ls -A ~')).stdout).toBe('code\n');
    expect(readdirSync(outside)).toEqual([]);
  });
});

describe('a directory of the user', () => {
  test('has one home for each project, or one for all of them if that is said', async () => {
    using machine = createAgentMachine(ONE);
    const cwd = otherProject(machine);
    const leave = (name: string, at?: string): Promise<Result> =>
      machine.ags(['exec', '--', 'sh', '-c', `touch ~/${name}; ls ~`], at === undefined ? {} : { cwd: at });
    userConfig(machine, 'home: ~/aihome\n');
    expect((await leave('one')).stdout).toBe('code\none\n');
    expect((await leave('two', cwd)).stdout).toBe('code\ntwo\n');
    expect(readdirSync(join(machine.home, 'aihome'))).toHaveLength(2);
    userConfig(machine, 'home: { keep: ~/aihome, shared: true }\n');
    expect((await leave('three')).stdout).toBe('code\nthree\n');
    expect((await leave('four', cwd)).stdout).toBe('code\nfour\nthree\n');
    expect((await machine.ags(['home'])).stdout).toContain(join(machine.home, 'aihome/shared'));
  });

  test.runIf(CALLERS.includes('root'))('root keeps no home where another user can replace it', async () => {
    using machine = createAgentMachine('root');
    const theirs = join(machine.root, 'theirs');
    mkdirSync(theirs, { mode: 0o700 });
    giveTo(theirs, 12_345);
    const refused = await sh(machine, 'true', ['--home', theirs]);
    expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining('belongs to another user') as string });
    expect(readdirSync(theirs)).toEqual([]);
  });

  test('is refused if it is the real home, contains it, is in the project, is a link, or open to others', async () => {
    using machine = createAgentMachine(ONE);
    const { home, project } = machine;
    mkdirSync(join(home, 'open'), { mode: 0o755 });
    mkdirSync(join(home, 'real'), { mode: 0o700 });
    symlinkSync(join(home, 'real'), join(home, 'link'));
    giveTo(home, machine.uid);
    const refused: [string, string][] = [
      [home, 'the home as a whole is never shown'],
      ['~/', 'the home as a whole is never shown'],
      [join(home, '..'), 'your home lies below it'],
      [project, 'it is in the project'],
      [join(project, 'sub'), 'it is in the project'],
      ['~/.config/ags', 'ags keeps its own files there'],
      ['/run/homes', 'sockets of this machine live there'],
      ['~/link', 'through a symbolic link'],
      ['~/link/new', 'through a symbolic link'],
      ['~/open', 'other users of this machine can enter'],
      ['aihome', 'task, project, or a directory'],
    ];
    for (const [directory, why] of refused) {
      const { code, stderr } = await sh(machine, 'true', ['--home', directory]);
      expect({ code, why: stderr.includes(why) }, `${directory}: ${stderr}`).toEqual({ code: 2, why: true });
    }
    expect(readdirSync(join(home, 'real'))).toEqual([]);
  });
});
