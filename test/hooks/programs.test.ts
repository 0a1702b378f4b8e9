// test/hooks/programs.test.ts: real programs as hooks: their exit codes, resource limits and clean-up.
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createEngine } from '../../src/hooks/engine.ts';
import type { HookDecided } from '../../src/protocol/hook.ts';
import { ALSO_AS_USER, runAgain, startAgain } from '../conformance/again.ts';
import { RUNNER } from '../conformance/place.ts';
import { until } from '../exec/given.ts';
import { AGENT, COMMAND, createHookPlace, NO_HOOKS, processesWith, READ, STOP, WRITE, WROTE } from './fixture.ts';

const sh = (body: string): string => `#!/bin/sh\n${body}\n`;

/** The verdict of one hook on a command. */
async function verdictOf(content: string, timeoutSeconds = 10): Promise<unknown> {
  await using at = createHookPlace();
  at.own('pre-bash', content);
  const hooks = await at.open({ config: { hooks: { ...NO_HOOKS, timeoutSeconds } } });
  const verdict = await hooks.gate(COMMAND);
  expect(at.events).toHaveLength(1);
  return verdict.allow ? at.events[0]?.verdict : `${at.events[0]?.verdict}: ${verdict.reason}`;
}

const NAME = '~/.config/ags/hooks/pre-bash';
const FAILED = `failed: The hook ${NAME} failed, so this is refused: `;

if (process.env[RUNNER.word] !== undefined)
  test('a runner with hooks (helper of another test)', async () => {
    await using at = createHookPlace();
    const word = process.env[RUNNER.word] ?? '';
    at.own('pre-bash', sh(`sleep ${word} & sleep ${word}`));
    const hooks = await at.open({ config: { hooks: { ...NO_HOOKS, timeoutSeconds: 3 } } });
    const verdict = hooks.gate(COMMAND);
    await until(() => processesWith(`sleep ${word}`).length >= 2);
    writeFileSync(join(process.env[RUNNER.directory] ?? '', 'pid'), String(process.pid));
    await verdict;
  });
else hookTests();

function hookTests(): void {
  test.each([
    ['exit 0', 'allowed'],
    ['echo not today >&2; exit 2', `refused: Refused by the hook ${NAME}: not today`],
    ['exit 2', `refused: Refused by the hook ${NAME}: it gave no reason`],
    ['echo oops >&2; exit 1', `${FAILED}it ended with exit code 1: oops`],
    ['exit 3', `${FAILED}it ended with exit code 3`],
    ['exit 255', `${FAILED}it ended with exit code 255`],
    ['kill -SEGV $$', `${FAILED}it was ended by SIGSEGV`],
    ['kill -KILL $$', `${FAILED}it was ended by SIGKILL`],
    ['nonexistent-program-x', `${FAILED}it ended with exit code 127`],
    ['echo "{\\"decision\\":\\"block\\"}"; exit 0', 'allowed'],
    // Closes its input and never reads the request.
    ['exec <&-; exit 0', 'allowed'],
    // Only stderr is a reason.
    ['echo out; echo err >&2; exit 2', `refused: Refused by the hook ${NAME}: err`],
    // A background process does not delay the answer.
    ['sleep 1000 & exit 0', 'allowed'],
    ['setsid sleep 1000 & exit 0', 'allowed'],
  ])('"%s" is: %s', async (body, expected) => {
    expect(await verdictOf(sh(body))).toMatch(String(expected));
  });

  test('a hook without an interpreter, or without a program, refuses', async () => {
    expect(await verdictOf('#!/nonexistent/interpreter\n')).toContain(
      `${FAILED}it ended with exit code 127: prlimit: `,
    );
    expect(await verdictOf('\u0001\u0002\u0003')).toContain(FAILED);
  });

  test('a hook receives the whole request, in its own directory, with a small environment', async () => {
    await using at = createHookPlace();
    at.own(
      'pre-bash',
      sh(`cat > "$HOME/input"; env > "$HOME/env"; pwd > "$HOME/cwd"; ls -la > "$HOME/ls"; umask > "$HOME/umask"`),
    );
    const hooks = await at.open();
    expect(await hooks.gate(COMMAND)).toEqual({ allow: true });
    const read = (name: string): string => readFileSync(join(at.context.home, name), 'utf8');
    expect(JSON.parse(read('input'))).toEqual({
      version: 1,
      hook: 'pre-bash',
      task: 'some-task',
      run: 1,
      agent: 'tried',
      goal: 'make it work',
      project: at.project,
      tool: 'Bash',
      actions: [{ kind: 'command', command: 'npm test' }],
      input: { command: 'npm test' },
    });
    const names = read('env')
      .split('\n')
      .map((line) => line.split('=')[0] ?? '')
      .filter((name) => !['', '_', 'PWD', 'OLDPWD', 'SHLVL'].includes(name));
    expect(names.toSorted()).toEqual(
      'AGS_HOOK AGS_HOOK_MARK AGS_HOOK_NAME AGS_PROJECT AGS_TASK HOME LANG PATH TMPDIR USER'.split(' '),
    );
    expect(read('cwd').trim()).toBe(join(at.task, 'hooks/work'));
    expect(statSync(join(at.task, 'hooks')).mode & 0o777).toBe(0o700);
  });

  test('a hook that exceeds its time is killed with its children, and refuses', async () => {
    const word = `77${Date.now()}`;
    const body = `sleep ${word} & setsid sleep ${word} & setsid sh -c 'setsid sleep ${word} & sleep ${word}' & sleep ${word}`;
    expect(await verdictOf(sh(body), 1)).toBe(`${FAILED}it gave no answer within 1 s`);
    await until(() => processesWith(word).length === 0);
  });

  test('a hook that traps signals and stops reading is killed, too', async () => {
    expect(await verdictOf(sh(`trap '' TERM INT HUP; while :; do sleep 0.1; done`), 1)).toBe(
      `${FAILED}it gave no answer within 1 s`,
    );
  });

  test('a fork bomb in a hook is bounded', async () => {
    const word = `78${Date.now()}`;
    const bomb = `i=0; while [ $i -lt 600 ]; do sleep ${word} & i=$((i+1)); done; wait`;
    expect(await verdictOf(sh(bomb), 60)).toBe(`${FAILED}it started more than 256 processes`);
    await until(() => processesWith(word).length === 0);
  });

  test('a hook cannot exhaust memory, disk or processor', async () => {
    const data = `perl -e '$x = "a" x (3 * 2**30); print length $x' >&2 && exit 0; exit 4`;
    expect(await verdictOf(sh(data))).toContain(`${FAILED}it ended with exit code 4`);
    expect(await verdictOf(sh('truncate -s 2G big 2>/dev/null && exit 0; exit 5'))).toContain(
      'it ended with exit code',
    );
    expect(
      await verdictOf(
        sh('ulimit -t; ulimit -c; ulimit -n; [ "$(ulimit -t) $(ulimit -c) $(ulimit -n)" = "11 0 1024" ]'),
      ),
    ).toBe('allowed');
  });

  test('the reason is the first 4 kB of stderr; endless output is a failure', async () => {
    const long = await verdictOf(sh(`head -c 100000 /dev/zero | tr '\\0' 'x' | fold -w 100 >&2; exit 2`));
    expect(String(long).length).toBeGreaterThan(4000);
    expect(String(long).length).toBeLessThan(4300);
    expect(await verdictOf(sh('yes >&2'))).toBe(`${FAILED}it printed more than 16 MB`);
    // stdout is unlimited, because ags discards it.
    expect(await verdictOf(sh('head -c 50000000 /dev/zero; exit 0'))).toBe('allowed');
  });

  test('output of hooks is sanitized: escape sequences, control characters and invalid UTF-8', async () => {
    expect(
      await verdictOf(sh(`printf '\\033]0;title\\007 \\033[31mred\\r over \\377\\376 \\342\\200\\256' >&2; exit 2`)),
    ).toBe(
      `refused: Refused by the hook ${NAME}: \\x1b]0;title\\x07 \\x1b[31mred\\x0d over �� <U+202E>`.replace(
        '\\x0d',
        '\\r',
      ),
    );
  });

  test('all hooks of a point run in order, and the first refusal ends the sequence', async () => {
    await using at = createHookPlace();
    const note = (name: string, code = 0): string => sh(`echo ${name} >> "$HOME/order"; exit ${code}`);
    at.file('.ags/hooks/pre-bash', note('project'));
    at.file('.ags/hooks/pre-bash.d/20-b', note('project-20', 2));
    at.file('.ags/hooks/pre-bash.d/10-a', note('project-10'));
    at.file('.ags/hooks/pre-bash.d/README.md', 'no hook', 0o644);
    at.file('.ags/hooks/pre-bash.d/.swp', 'no hook', 0o644);
    at.file('.ags/hooks/lib.sh', 'no hook', 0o644);
    at.file('.ags/hooks/pre-any', note('project-any'));
    at.own('pre-bash', note('mine'));
    at.own('pre-writes', note('never'));
    at.trust();
    const command = { point: 'pre-bash', timeoutSeconds: null, inside: false, origin: 'ags.yaml:1' } as const;
    const hooks = await at.open({
      config: { hooks: { ...NO_HOOKS, commands: [{ ...command, run: 'echo late >> "$HOME/order"' }] } },
    });
    expect(await hooks.gate(COMMAND)).toMatchObject({ allow: false });
    const order = (): string[] => readFileSync(join(at.context.home, 'order'), 'utf8').trim().split('\n');
    expect(order()).toEqual(['project-any', 'mine', 'project', 'project-10', 'project-20']);
    rmSync(join(at.context.home, 'order'));
    expect(await hooks.gate(READ)).toEqual({ allow: true });
    expect(order()).toEqual(['project-any']);
    expect(at.said().at(-1)).toEqual({
      point: 'pre-any',
      hook: '.ags/hooks/pre-any',
      tool: 'Read',
      verdict: 'allowed',
      reason: null,
      mode: 'enforced',
    });
  });

  test('a refused call is recorded for an agent that does not report it', async () => {
    await using place = createHookPlace();
    place.own('pre-bash', '#!/bin/sh\nexit 2\n');
    const seen: unknown[] = [];
    const hooks = await place.open({
      agent: { ...AGENT, omitsRefused: true },
      emit: ({ type, ...event }) => void seen.push([type, 'action' in event ? event.action : null]),
    });
    expect((await hooks.gate(COMMAND)).allow).toBe(false);
    expect((await hooks.gate(WRITE)).allow).toBe(true);
    expect(seen).toEqual([
      ['tool.started', { kind: 'command', command: 'npm test' }],
      ['hook.decided', null],
      ['tool.finished', null],
    ]);
  });

  test('each hook point matches the actions in its name', async () => {
    await using at = createHookPlace();
    for (const point of ['pre-any', 'pre-bash', 'pre-writes', 'post-writes', 'post-stop']) at.own(point, sh('exit 0'));
    const hooks = await at.open({ interactive: true });
    const asked = async (request: typeof COMMAND): Promise<string[]> => {
      at.events.length = 0;
      await hooks.gate(request);
      return at.events.map(({ point }) => point);
    };
    expect(await asked(COMMAND)).toEqual(['pre-any', 'pre-bash']);
    expect(await asked(WRITE)).toEqual(['pre-any', 'pre-writes']);
    expect(await asked({ ...COMMAND, actions: [...COMMAND.actions, ...WRITE.actions] })).toEqual([
      'pre-any',
      'pre-bash',
      'pre-writes',
    ]);
    expect(await asked(READ)).toEqual(['pre-any']);
    expect(await asked(WROTE)).toEqual(['post-writes']);
    expect(await asked({ ...COMMAND, when: 'after' })).toEqual([]);
    expect(await asked(STOP)).toEqual(['post-stop']);
  });

  test('a configured list is a program, a string is a shell command, and a missing program refuses', async () => {
    await using at = createHookPlace();
    const of = (run: string | string[], timeoutSeconds: number | null = null) =>
      ({ point: 'pre-bash', run, timeoutSeconds, inside: false, origin: 'ags.yaml:3' }) as const;
    const verdict = async (command: ReturnType<typeof of>): Promise<unknown> => {
      const hooks = await at.open({ config: { hooks: { ...NO_HOOKS, commands: [command] } } });
      const said = await hooks.gate(COMMAND);
      await hooks.close();
      return said.allow || said.reason;
    };
    expect(await verdict(of(['true', '; exit 2']))).toBe(true);
    expect(await verdict(of('echo "no: $AGS_HOOK" >&2; exit 2'))).toBe(
      'Refused by the hook echo "no: $AGS_HOOK" >&2; exit 2 (ags.yaml:3): no: pre-bash',
    );
    expect(await verdict(of(['no-such-program-at-all']))).toMatch(
      /failed, so this is refused: .*(No such file|Permission denied)/,
    );
    expect(await verdict(of(['/etc/passwd']))).toContain('Permission denied');
    expect(await verdict(of(['sleep', '100'], 1))).toBe(
      'The hook sleep 100 (ags.yaml:3) failed, so this is refused: it gave no answer within 1 s',
    );
  });

  test('in a terminal, a hook can send an agent back only a limited number of times', async () => {
    await using at = createHookPlace();
    at.own('post-stop', sh('echo run the tests first >&2; exit 2'));
    const hooks = await at.open({ interactive: true });
    const answers = [];
    for (let i = 0; i < 7; i++) answers.push((await hooks.gate(STOP)).allow);
    expect(answers).toEqual([false, false, false, false, false, true, true]);
    expect(at.events.map(({ verdict }) => verdict)).toEqual(Array(7).fill('refused'));
  });

  test('many concurrent requests queue up, and all get an answer', async () => {
    await using at = createHookPlace();
    at.own('pre-bash', sh('echo x >> "$HOME/count"'));
    const hooks = await at.open();
    const verdicts = await Promise.all(Array.from({ length: 40 }, () => hooks.gate(COMMAND)));
    expect(verdicts.every(({ allow }) => allow)).toBe(true);
    expect(readFileSync(join(at.context.home, 'count'), 'utf8')).toBe('x\n'.repeat(40));
  });

  test('many hooks together answer within the time limit', async () => {
    const silent = { point: 'pre-bash', timeoutMs: 2 ** 30, ask: () => new Promise<never>(() => undefined) } as const;
    const quick = { ...silent, ask: () => Promise.resolve({ verdict: 'allowed' } as const) };
    const events: HookDecided[] = [];
    const engine = createEngine({
      hooks: [
        { ...quick, name: 'quick' },
        { ...silent, name: 'silent' },
      ],
      about: { task: 't', run: 1, agent: 'a', goal: 'g', project: '/p' },
      emit: (event) => events.push(event),
      mostMs: 500,
    });
    expect(engine.longestMs).toBe(500);
    expect(await engine.decide(COMMAND, 'enforced')).toMatchObject({ allow: false });
    expect(events.map(({ hook, verdict }) => `${hook} ${verdict}`)).toEqual(['quick allowed', 'silent failed']);
  });

  test('a request that cannot be described to a hook is refused', async () => {
    await using at = createHookPlace();
    at.own('pre-any', sh('exit 0'));
    const hooks = await at.open();
    const round: { self?: unknown } = {};
    round.self = round;
    expect(await hooks.gate({ ...READ, input: round })).toMatchObject({ allow: false });
    let deep: unknown = [];
    for (let i = 0; i < 100_000; i++) deep = [deep];
    expect(await hooks.gate({ ...READ, input: deep })).toMatchObject({ allow: false });
    expect(at.events.map(({ verdict }) => verdict)).toEqual(['failed', 'failed']);
  });

  test('inside hooks run in the sandbox, and their failures refuse', async () => {
    await using at = createHookPlace();
    const calls: unknown[] = [];
    const inside = {
      point: 'post-writes',
      run: ['./fmt'],
      timeoutSeconds: 1,
      inside: true,
      origin: 'ags.yaml:9',
    } as const;
    let answer: () => Promise<{ exitCode: number; stderr: string }> = () =>
      Promise.resolve({ exitCode: 0, stderr: '' });
    const hooks = await at.open({
      config: { hooks: { ...NO_HOOKS, commands: [inside] } },
      runInside(argv, input) {
        calls.push([argv, (JSON.parse(input) as { hook: string }).hook]);
        return answer();
      },
    });
    expect(await hooks.gate(WROTE)).toEqual({ allow: true });
    expect(calls).toEqual([[['./fmt'], 'post-writes']]);
    answer = () => Promise.resolve({ exitCode: 2, stderr: 'bad\u001b[2J' });
    expect(await hooks.gate(WROTE)).toEqual({
      allow: false,
      reason: 'Refused by the hook ./fmt (ags.yaml:9): bad\\x1b[2J',
    });
    answer = () => Promise.reject(new Error('the sandbox is gone'));
    expect(await hooks.gate(WROTE)).toMatchObject({
      allow: false,
      reason: expect.stringContaining('the sandbox is gone'),
    });
    answer = () => new Promise(() => undefined);
    expect(await hooks.gate(WROTE)).toMatchObject({ allow: false, reason: expect.stringContaining('within 1 s') });
  });

  test('an agent that cannot be stopped is only observed', async () => {
    await using at = createHookPlace();
    at.own('pre-bash', sh('echo never >&2; exit 2'));
    at.own('post-writes', sh('exit 0'));
    const hooks = await at.open({ agent: { name: 'tried', gate: 'observed', readHook: null } });
    expect([hooks.listener, hooks.listeners, hooks.files]).toEqual([null, [], []]);
    const action = WRITE.actions[0];
    if (action === undefined) throw new Error('the action is missing');
    hooks.observe({ type: 'tool.started', id: '1', tool: 'Bash', action: { kind: 'command', command: 'ls' } });
    hooks.observe({ type: 'tool.finished', id: '1', outcome: 'done' });
    hooks.observe({ type: 'tool.started', id: '2', tool: 'Write', action });
    hooks.observe({ type: 'tool.finished', id: '2', outcome: 'done' });
    await hooks.close();
    expect(at.said().map(({ point, verdict, mode }) => `${point} ${verdict} ${mode}`)).toEqual([
      'pre-bash refused observed',
      'post-writes allowed observed',
    ]);
  });

  test('without hooks nothing is set up, and every action is allowed', async () => {
    await using at = createHookPlace();
    const hooks = await at.open();
    expect([hooks.listener, hooks.listeners, hooks.files]).toEqual([null, [], []]);
    expect(await hooks.gate(COMMAND)).toEqual({ allow: true });
  });

  test('the end of the run ends its hooks and deletes their copies', async () => {
    await using at = createHookPlace();
    const word = `79${Date.now()}`;
    at.own('pre-bash', sh(`setsid sleep ${word} & sleep ${word}`));
    const hooks = await at.open({ config: { hooks: { ...NO_HOOKS, timeoutSeconds: 600 } } });
    const verdict = hooks.gate(COMMAND);
    await until(() => processesWith(`sleep ${word}`).length >= 2);
    await hooks.close();
    expect(await verdict).toMatchObject({ allow: false });
    await until(() => processesWith(word).length === 0);
    expect(existsSync(join(at.task, 'hooks'))).toBe(false);
    expect(await hooks.gate(COMMAND)).toMatchObject({ allow: false });
  });

  test('hooks run as private copies from the start of the run', async () => {
    await using at = createHookPlace();
    at.file('.ags/hooks/pre-bash', sh('echo no >&2; exit 2'));
    at.trust();
    const hooks = await at.open();
    const copies = join(at.task, 'hooks/programs');
    expect(readdirSync(copies)).toEqual(['0-pre-bash']);
    expect(statSync(join(copies, '0-pre-bash')).mode & 0o777).toBe(0o500);
    writeFileSync(join(at.project, '.ags/hooks/pre-bash'), sh('exit 0'));
    expect(await hooks.gate(COMMAND)).toMatchObject({ allow: false });
    rmSync(join(at.project, '.ags'), { recursive: true });
    expect(await hooks.gate(COMMAND)).toMatchObject({ allow: false });
  });

  test('hooks end when their runner is killed', async () => {
    const word = `76${Date.now()}`;
    const directory = mkdtempSync('/tmp/ags-runner-');
    const env = { [RUNNER.word]: word, [RUNNER.directory]: directory };
    const child = startAgain({ file: String(expect.getState().testPath), uid: null, env });
    for (const stream of [child.stdout, child.stderr]) stream?.resume();
    try {
      const said = (): string =>
        existsSync(join(directory, 'pid')) ? readFileSync(join(directory, 'pid'), 'utf8') : '';
      // The file exists before it has content, and pid 0 would mean our own process group.
      await until(() => Number(said()) > 0);
      process.kill(Number(said()), 'SIGKILL');
      await until(() => processesWith(word).length === 0);
    } finally {
      child.kill('SIGKILL');
      rmSync(directory, { recursive: true, force: true });
    }
  });

  if (ALSO_AS_USER)
    test('an ordinary user has the same hooks', async () => {
      const { failed, other, passed } = await runAgain({ file: String(expect.getState().testPath), uid: 42_424 });
      expect({ failed, other, enough: passed.length >= 30 }).toEqual({ failed: [], other: [], enough: true });
    }, 310_000);
}
