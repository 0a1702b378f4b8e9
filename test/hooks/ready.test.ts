// test/hooks/ready.test.ts: the built-in hooks.
import { execFileSync, spawnSync } from 'node:child_process';
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { formatCommand } from '../../src/hooks/ready/format.ts';
import { noSecrets } from '../../src/hooks/ready/no-secrets.ts';
import { protectBranches, simpleCommands } from '../../src/hooks/ready/protect-branches.ts';
import type { Action } from '../../src/protocol/agent-event.ts';
import type { HookInput, ReadyHook } from '../../src/protocol/hook.ts';
import { COMMAND, createHookPlace, NO_HOOKS, READ, WRITE, WROTE } from './fixture.ts';

const about = (...actions: Action[]): HookInput => ({
  version: 1,
  hook: 'pre-bash',
  task: 't',
  run: 1,
  agent: 'tried',
  goal: 'g',
  project: '/project',
  tool: 'Bash',
  actions,
  input: null,
});
const command = (text: string): HookInput => about({ kind: 'command', command: text });
const write = (content: string, path = 'a.ts'): HookInput => about({ kind: 'write', path, change: 'write', content });

describe('protect-branches', () => {
  test.each([
    'git push origin main',
    'git push -u origin master',
    'git push origin HEAD:main',
    'git push origin +x:release/1.2',
    'git push origin :refs/heads/main',
    'git push --delete origin main',
    'git push --force origin main',
    'git push --all',
    'git push --mirror backup',
    '/usr/bin/git -C /project -c a.b=c push origin main',
    'cd x && git push origin main',
    'cd x; GIT_SSH=y git push origin "main"',
    "bash -lc 'git push origin main'",
    `bash -c "sh -c 'git push origin main'"`,
    'echo $(git push origin main)',
    'true | xargs git push origin main',
    'if true; then git push origin main; fi',
    'git branch -D main',
    'git branch --delete --force master',
    'git branch -f main HEAD~3',
    'git branch -m main old',
    'git branch -M other main',
    'git checkout -B main',
    'git switch -C release/2 HEAD',
    'git switch --force-create main x',
    'git worktree add -B main ../x',
    'git update-ref refs/heads/main abc',
    'git update-ref -d refs/heads/master',
    'git fetch origin x:main',
    'git fetch . +HEAD:refs/heads/main',
    'git pull origin x:main',
    'git checkout main && git merge x',
    'git switch main\ngit reset --hard HEAD~1',
    'git checkout main; git push',
  ])('refuses %j', (line) => {
    expect(protectBranches(command(line))).toMatchObject({
      verdict: 'refused',
      reason: expect.stringContaining('main, master'),
    });
  });

  test.each([
    'git push',
    'git push origin feature/main-menu',
    'git push origin HEAD:maintenance',
    'git push https://example.com/main.git x',
    'git status',
    'git diff main',
    'git log main..HEAD',
    'git checkout main',
    'git checkout -b feature main',
    'git checkout -B feature main',
    'git checkout main -- file && git commit -m x',
    'git branch -f feature main',
    'git branch feature main',
    'git branch --contains main',
    'git fetch origin main',
    'git fetch https://example.com/x.git main',
    'git rebase main',
    'git merge main',
    'git update-ref refs/heads/x refs/heads/main',
    'git commit -m "push main"',
    'echo main',
    'digit push origin main',
    '',
  ])('lets %j pass', (line) => {
    expect(protectBranches(command(line))).toEqual({ verdict: 'allowed' });
  });

  test('refuses to write into git directories', () => {
    for (const path of ['.git/refs/heads/main', '/project/.git/refs/heads/release/1', '.git/packed-refs'])
      expect(protectBranches(write('abc', path))).toMatchObject({ verdict: 'refused' });
    expect(protectBranches(write('abc', '.git/refs/heads/x'))).toEqual({ verdict: 'allowed' });
  });

  // Quadratic time would exceed the test's timeout.
  test('every line is read in linear time', () => {
    for (const piece of ['"', "'", '\\"', '"\\', '\'"', '$(', 'git push ', 'a\\', '"a\' '])
      for (let times = 0; times < 10; times++) simpleCommands(piece.repeat(100_000 / piece.length));
  });
});

describe('no-secrets', () => {
  const b64 = (length: number): string => 'aB3'.repeat(length).slice(0, length);
  test.each([
    [`AKIA${'ABCD'.repeat(4)}`, 'an AWS access key'],
    [`aws_secret_access_key = ${b64(40)}`, 'an AWS secret key'],
    [`ghp_${b64(36)}`, 'a GitHub token'],
    [`github_pat_${b64(60)}`, 'a GitHub token'],
    [`xoxb-${b64(12)}`, 'a Slack token'],
    ['-----BEGIN OPENSSH PRIVATE KEY-----', 'a private key'],
    ['-----BEGIN PRIVATE KEY-----', 'a private key'],
    [`sk-ant-${b64(24)}`, 'an API key of a model provider'],
    [`sk-proj-${b64(24)}`, 'an API key of a model provider'],
    [`eyJ${b64(20)}.eyJ${b64(20)}.${b64(20)}`, 'a signed web token (JWT)'],
  ])('refuses %s', (secret, what) => {
    for (const input of [write(`const key = "${secret}";\n`), command(`echo '${secret}' > .env`)]) {
      const answer = noSecrets(input);
      expect(answer).toMatchObject({ verdict: 'refused', reason: expect.stringContaining(what) });
      expect(JSON.stringify(answer)).not.toContain(secret.slice(5));
    }
  });

  test('allows everything else', () => {
    expect(
      noSecrets(write('const key = process.env.KEY;\nAKIA is short\npostgres://user:password@localhost/db')),
    ).toEqual({
      verdict: 'allowed',
    });
    expect(noSecrets(about({ kind: 'read', path: `sk-ant-${b64(24)}` }))).toEqual({ verdict: 'allowed' });
    expect(noSecrets(about({ kind: 'write', path: 'a', change: 'delete' }))).toEqual({ verdict: 'allowed' });
  });
});

async function using(
  use: ReadyHook[],
): Promise<
  ReturnType<typeof createHookPlace> & { hooks: Awaited<ReturnType<ReturnType<typeof createHookPlace>['open']>> }
> {
  const at = createHookPlace();
  return Object.assign(at, { hooks: await at.open({ config: { hooks: { ...NO_HOOKS, use } } }) });
}

describe('log', () => {
  test('records every action once, also those that another hook refuses', async () => {
    await using at = await using(['no-secrets', 'log']);
    const secret = {
      ...WRITE,
      actions: [{ kind: 'write', path: 'k', change: 'write', content: '-----BEGIN PRIVATE KEY-----' } as const],
    };
    for (const request of [COMMAND, READ, secret, WROTE]) await at.hooks.gate(request);
    await at.hooks.atEnd(new AbortController().signal);
    const file = join(at.task, 'actions.jsonl');
    const lines = readFileSync(file, 'utf8')
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { hook: string; tool: string });
    expect(lines.map(({ hook, tool }) => `${hook} ${tool}`)).toEqual([
      'pre-any Bash',
      'pre-any Read',
      'pre-any Write',
      'post-writes Write',
      'post-stop ',
    ]);
    expect(lines[0]).toEqual({
      at: '1970-01-01T00:00:00.000Z',
      task: 'some-task',
      run: 1,
      agent: 'tried',
      hook: 'pre-any',
      tool: 'Bash',
      actions: COMMAND.actions,
    });
    expect(statSync(file).mode & 0o777).toBe(0o600);
  });

  test('bounds each line and the whole file', async () => {
    await using at = await using(['log']);
    const file = join(at.task, 'actions.jsonl');
    await at.hooks.gate({ ...COMMAND, actions: [{ kind: 'command', command: 'x'.repeat(5_000_000) }] });
    expect(readFileSync(file, 'utf8').length).toBeLessThan(20_000);
    truncateSync(file, 65 * 2 ** 20);
    await at.hooks.gate(COMMAND);
    expect([statSync(file).size < 1000, statSync(`${file}.1`).size]).toEqual([true, 65 * 2 ** 20]);
  });

  test('refuses when the log cannot be written', async () => {
    await using at = await using(['log']);
    mkdirSync(join(at.task, 'actions.jsonl'));
    expect(await at.hooks.gate(COMMAND)).toMatchObject({ allow: false, reason: expect.stringContaining('EISDIR') });
  });
});

describe('format', () => {
  /** Runs the hook's inside command in a project of its own. */
  function format(
    files: Record<string, string>,
    paths: string[],
  ): { status: number | null; stderr: string; read(path: string): string } {
    const project = mkdtempSync('/tmp/ags-format-');
    for (const [path, content] of Object.entries(files)) {
      mkdirSync(join(project, path, '..'), { recursive: true });
      writeFileSync(join(project, path), content);
      if (content.startsWith('#!')) chmodSync(join(project, path), 0o755);
    }
    const actions = paths.map((path): Action => ({ kind: 'write', path, change: 'write' }));
    const [program = '', ...args] = formatCommand({ ...about(...actions), project }) ?? [];
    const { status, stderr } = spawnSync(program, args, { encoding: 'utf8', env: { PATH: '/usr/bin:/bin' } });
    const read = (path: string): string => readFileSync(join(project, path), 'utf8');
    const result = Object.fromEntries([...Object.keys(files), ...paths].map((path) => [path, tryRead(read, path)]));
    rmSync(project, { recursive: true, force: true });
    return { status, stderr, read: (path) => result[path] ?? '' };
  }
  const tryRead = (read: (path: string) => string, path: string): string => {
    try {
      return read(path);
    } catch {
      return '';
    }
  };
  /** Appends its name and arguments to the file in its last argument. */
  const tool = (name: string): string => `#!/bin/sh\nfor last; do :; done\necho "${name} $*" >> "$last"\n`;

  test("runs the project's formatter over the written file", () => {
    const prettier = format(
      { '.prettierrc': '{}', 'node_modules/.bin/prettier': tool('prettier'), 'a b.ts': 'x\n', '-x.ts': 'y\n' },
      ['a b.ts', '-x.ts', 'gone.ts'],
    );
    expect([prettier.status, prettier.stderr]).toEqual([0, '']);
    expect(prettier.read('a b.ts')).toBe('x\nprettier --write --ignore-unknown --log-level warn ./a b.ts\n');
    expect(prettier.read('-x.ts')).toContain('prettier');
    const biome = format({ 'biome.json': '{}', 'node_modules/.bin/biome': tool('biome'), 'a.ts': '' }, ['a.ts']);
    expect(biome.read('a.ts')).toContain('biome format --write');
    const ruff = format({ 'pyproject.toml': '[tool.ruff]\n', '.venv/bin/ruff': tool('ruff'), 'a.py': '', 'a.ts': '' }, [
      'a.py',
      'a.ts',
    ]);
    expect([ruff.read('a.py'), ruff.read('a.ts')]).toEqual(['ruff format --quiet ./a.py\n', '']);
    const rust = format(
      { 'Cargo.toml': 'edition = "2024"\n', 'node_modules/.bin/rustfmt': tool('rustfmt'), 'a.rs': '' },
      ['a.rs'],
    );
    expect(rust.read('a.rs')).toBe('rustfmt --edition 2024 ./a.rs\n');
    const go = format({ 'go.mod': '', 'node_modules/.bin/gofmt': tool('gofmt'), 'a.go': '' }, ['a.go']);
    expect(go.read('a.go')).toBe('gofmt -w ./a.go\n');
  });

  test('does nothing without a formatter, and reports the output of one that fails', () => {
    expect(format({ 'a.ts': 'x' }, ['a.ts'])).toMatchObject({ status: 0, stderr: '' });
    expect(format({ 'node_modules/.bin/prettier': tool('prettier'), 'a.ts': 'x' }, ['a.ts']).read('a.ts')).toBe('x');
    const failing = format(
      { '.prettierrc': '', 'node_modules/.bin/prettier': '#!/bin/sh\necho "syntax error"\nexit 1\n', 'a.ts': '' },
      ['a.ts'],
    );
    expect(failing).toMatchObject({ status: 2, stderr: 'syntax error\n' });
    expect(formatCommand(about({ kind: 'write', path: 'a', change: 'delete' }))).toBe(null);
  });

  test('is plain POSIX shell', () => {
    const script = formatCommand(write('x'))?.[2] ?? '';
    execFileSync('sh', ['-n'], { input: script });
    expect(script).toContain('"${edition:-2021}"');
  });

  test('runs only inside the sandbox', async () => {
    const at = createHookPlace();
    const calls: string[] = [];
    const hooks = await at.open({
      config: { hooks: { ...NO_HOOKS, use: ['format'] } },
      runInside: (argv) => Promise.resolve((calls.push(argv.slice(3).join(' ')), { exitCode: 0, stderr: '' })),
    });
    expect(await hooks.gate(WROTE)).toEqual({ allow: true });
    expect(calls).toEqual([`format ${at.project} ./src/a.ts`]);
    await at[Symbol.asyncDispose]();
  });
});

describe('the examples in docs/agents/hooks.md', () => {
  const page = readFileSync(new URL('../../docs/agents/hooks.md', import.meta.url), 'utf8');
  const block = (language: string): string => new RegExp(`\`\`\`${language}\\n(#![^]*?)\`\`\``).exec(page)?.[1] ?? '';
  const asked = async (point: string, hook: string, request: typeof COMMAND): Promise<unknown> => {
    await using at = createHookPlace();
    at.own(point, hook);
    const hooks = await at.open();
    const verdict = await hooks.gate(request);
    return verdict.allow || verdict.reason.replace(/^.*?pre-[a-z]+: /, '');
  };
  const running = (text: string): typeof COMMAND => ({ ...COMMAND, actions: [{ kind: 'command', command: text }] });
  const writing = (path: string): typeof COMMAND => ({ ...WRITE, actions: [{ kind: 'write', path, change: 'write' }] });

  test('work', async () => {
    const sh = /<<'END'\n([^]*?)END\n/.exec(page)?.[1] ?? '';
    expect(await asked('pre-bash', sh, running('ls'))).toBe(true);
    expect(await asked('pre-bash', sh, running('cd x && terraform apply'))).toBe(
      'Nothing is deployed from here. Show the plan instead.',
    );
    expect(await asked('pre-writes', block('python'), writing('src/a.ts'))).toBe(true);
    expect(await asked('pre-writes', block('python'), writing('src/../.env'))).toBe(
      '.env is not yours to change; only src and test are.',
    );
    expect(await asked('pre-bash', block('js'), running('npm ci'))).toBe(true);
    expect(await asked('pre-bash', block('js'), running('npm install left-pad'))).toContain('chosen by a person');
  });
});
