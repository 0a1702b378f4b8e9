// test/network/network-commands.test.ts: ags allow, deny and net, on real files and real control sockets.
import * as fs from 'node:fs';
import { dirname, join } from 'node:path';
import { Writable } from 'node:stream';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Context, Verb } from '../../src/cli/verb.ts';
import { parseVerb } from '../../src/cli/parse.ts';
import allow from '../../src/cli/verbs/allow.ts';
import deny from '../../src/cli/verbs/deny.ts';
import net from '../../src/cli/verbs/net.ts';
import { serveControl } from '../../src/lib/process/control.ts';
import { ownIdentity } from '../../src/lib/process/liveness.ts';
import { tryLock } from '../../src/lib/process/lock.ts';
import type { Decision, NetworkMode, NetworkRule } from '../../src/protocol/network.ts';
import type { RunFile, TaskFile } from '../../src/protocol/task.ts';
import { networkLogFile, openNetworkLog } from '../../src/store/network-log.ts';
import { createTask } from '../../src/store/tasks.ts';
import { isCovered } from '../../src/network/rule-files.ts';
import { createFixture, type Fixture } from '../config/config-fixture.ts';
import { createMachine, USUAL } from '../harness.ts';

let at: Fixture;
const closing: (() => void)[] = [];
beforeEach(() => {
  at = createFixture();
});
afterEach(() => {
  for (const close of closing.splice(0)) close();
  at[Symbol.dispose]();
});

const VERBS: Readonly<Record<string, Verb>> = { allow, deny, net };
const NOW = new Date('2026-03-04T05:06:07Z');

async function ags(line: string | readonly string[], answers?: string[]): Promise<string> {
  const [name = '', ...words] = typeof line === 'string' ? line.split(' ') : line;
  const pieces: string[] = [];
  const stream = new Writable({ write: (chunk: Buffer, _, done) => (pieces.push(chunk.toString()), done()) });
  const { projectDir, home, stateDir, cacheDir, userConfigFile } = at.input;
  const context = {
    cwd: projectDir,
    home,
    env: {},
    stateDir,
    cacheDir,
    configFile: userConfigFile,
    memoryBytes: 2 ** 33,
    now: () => NOW,
  };
  const ctx = {
    ...context,
    host: context,
    stdin: { isTTY: answers !== undefined },
    stdout: stream,
    stderr: stream,
    colour: false,
    async ask(question: string) {
      stream.write(`${question}\n`);
      return answers?.shift() ?? '';
    },
  } as unknown as Context;
  const verb = VERBS[name];
  const args = verb === undefined ? 'help' : parseVerb(name, verb, words);
  if (verb === undefined || args === 'help') throw new Error(`no verb: ${name}`);
  await verb.run(args, ctx);
  return pieces.join('');
}

function read(): string {
  return fs.readFileSync(join(at.input.projectDir, 'ags.yaml'), 'utf8');
}

/** Makes a running task with rules; this process is its runner. */
function run(
  options: {
    project?: string;
    rules?: readonly NetworkRule[];
    mode?: NetworkMode;
    asks?: unknown[];
    answers?: boolean;
  } = {},
): { id: string; rules: NetworkRule[] } {
  const rules = [...(options.rules ?? [])];
  const { id, paths } = createTask(
    at.input.stateDir,
    () => `build-${Math.random().toString(36).slice(2, 6).padEnd(4, '0')}`,
    (name) => ({
      task: {
        version: 1,
        id: name,
        name,
        kind: 'exec',
        project: options.project ?? fs.realpathSync(at.input.projectDir),
        git: false,
        command: ['make'],
        createdAt: NOW.toISOString(),
      } satisfies TaskFile,
      run: {
        version: 1,
        state: 'running',
        startedAtMs: NOW.getTime(),
        exitCode: null,
        label: 'x',
        workspace: 'overlay',
        hidden: [],
        revealed: [],
        base: null,
        objectFormat: 'sha1',
        runner: ownIdentity(),
        user: { uid: 1000, gid: 1000 },
        settled: [],
        ignoredDiscarded: false,
      } satisfies RunFile,
    }),
  );
  const server =
    options.answers === false
      ? null
      : serveControl(paths.root, async (request) => {
          const asked = request as { do: string; rules?: NetworkRule[] };
          if (asked.do === 'rules') return { rules, mode: options.mode ?? 'on' };
          if (asked.do === 'asks') return { asks: options.asks ?? [] };
          rules.push(...(asked.rules ?? []));
          return { added: asked.rules?.length };
        });
  closing.push(() => server?.close());
  return { id, rules };
}

function rule(more: Partial<NetworkRule>): NetworkRule {
  return { action: 'allow', host: 'a.test', port: 443, methods: null, path: null, origin: 'ags allow', ...more };
}

describe('ags allow', () => {
  test('changes every running sandbox of this project, and names them', async () => {
    const [one, two] = [run(), run()];
    const other = run({ project: '/elsewhere' });
    const out = await ags(['allow', 'A.test.', '*.b.test', 'a.test']);
    expect([one.rules, two.rules, other.rules]).toEqual([
      [rule({}), rule({ host: '*.b.test' })],
      [rule({}), rule({ host: '*.b.test' })],
      [],
    ]);
    const names = [one.id, two.id].toSorted().join(', ');
    expect(out).toBe(
      `Allowed a.test, *.b.test in ${names}, until it ends.\nTo keep it: ags allow --project a.test '*.b.test'\n`,
    );
    expect(fs.existsSync(join(at.input.projectDir, 'ags.yaml'))).toBe(false);
  });

  test('changes only the sandbox of --run', async () => {
    const [one, two] = [run(), run()];
    await ags(`allow --run ${one.id} a.test`);
    expect([one.rules, two.rules]).toEqual([[rule({})], []]);
  });

  test("a rule for this machine's loopback names what works instead", async () => {
    expect(await ags(['allow', '--always', 'localhost:11434'])).toMatch(
      /A rule for localhost has no effect.*agents: \{ <agent>: \{ url: "http:\/\/localhost:11434" \} \}.*--tcp <name>:11434=localhost:11434/,
    );
    expect(await ags(['deny', '--always', 'localhost:11434'])).not.toContain('no effect');
  });

  test('fails with a hint when no sandbox runs', async () => {
    await expect(ags(['allow', '*.a.test'])).rejects.toMatchObject({
      code: 'task.not-found',
      message: 'No sandbox of this project is running.',
      hint: "For this project from now on: ags allow --project '*.a.test'\nFor all your projects: ags allow --always '*.a.test'\nFor one command: ags exec --allow '*.a.test' -- <command>",
    });
    const gone = run({ answers: false });
    await expect(ags('allow a.test')).rejects.toMatchObject({
      code: 'task.not-found',
      message: `${gone.id} cannot be reached: it has just ended, or has not started yet.`,
    });
  });

  test('says when the network is off', async () => {
    const { id } = run({ mode: 'off' });
    expect(await ags('allow a.test')).toBe(
      `Allowed a.test in ${id}, until it ends.\nThe network of this sandbox is off, so the rule has no effect.\n`,
    );
  });

  test.each([
    ['allow', { code: 'usage.invalid', message: 'Which host should be allowed?' }],
    [
      'allow *.com',
      {
        code: 'usage.invalid',
        message: '"*.com" is not a rule: *.com is too wide; name at least two parts after the star.',
      },
    ],
    [
      'allow --project --always a.test',
      { code: 'usage.invalid', message: '--project and --always exclude each other.' },
    ],
    ['allow --run missing a.test', { code: 'task.not-found' }],
  ])('ags %s is refused', async (line, error) => {
    await expect(ags(line)).rejects.toMatchObject(error);
  });

  test('--project edits ags.yaml, needs no approval for that, and changes running sandboxes', async () => {
    at.project('# ours\nhide: [x.txt] # keep\n');
    const { id, rules } = run();
    expect(await ags('allow --project a.test')).toBe(
      `Allowed a.test in ags.yaml.\nChanged in running sandboxes: ${id}\n`,
    );
    expect(read()).toBe('# ours\nhide: [x.txt] # keep\n\nnetwork:\n  allow:\n    - a.test\n');
    expect(rules).toEqual([rule({})]);
    expect((await at.load()).network.rules).toEqual([rule({ origin: 'ags.yaml:6' })]);
    expect(await ags('allow --project a.test:443')).toBe(
      `a.test is in ags.yaml already.\nChanged in running sandboxes: ${id}\n`,
    );
  });

  test('a command waits while another edits the configuration', async () => {
    fs.mkdirSync(at.input.stateDir, { recursive: true });
    const other = tryLock(join(at.input.stateDir, 'edit.lock'));
    const waiting = ags('allow --project a.test');
    await new Promise((resolve) => setTimeout(resolve, 500));
    at.project('network:\n  allow: [b.test]\n');
    at.trust(await at.asks());
    other?.[Symbol.dispose]();
    await waiting;
    expect(read()).toBe('network:\n  allow: [b.test, a.test]\n');
  });

  test('--project creates ags.yaml if it is missing', async () => {
    await ags('allow --project a.test b.test');
    expect(read()).toBe('network:\n  allow:\n    - a.test\n    - b.test\n');
    expect((await at.load()).network.rules.length).toBe(2);
  });

  test('--project keeps an approval, even if lines move', async () => {
    at.project('network:\n  mode: on\nreveal: [.env.test]\n');
    at.trust(await at.asks());
    await ags('allow --project a.test');
    expect(read()).toBe('network:\n  allow:\n    - a.test\n  mode: on\nreveal: [.env.test]\n');
    expect((await at.load()).reveal).toEqual(['.env.test']);
  });

  test('--project never approves pending requests', async () => {
    at.project('reveal: [.env.test]\n');
    expect(await ags('allow --project a.test')).toBe(
      'Allowed a.test in ags.yaml.\nags.yaml asks for more that you have not approved. Review it: ags trust\n',
    );
    expect(await at.asks()).toEqual([
      'ags.yaml:1: reveal: see hidden files of the project: .env.test',
      'ags.yaml:5: network.allow: reach a.test',
    ]);
    expect(fs.existsSync(join(at.input.stateDir, 'trust.json'))).toBe(false);
  });

  test('an approval is kept only for approved requests and the new rule, on any line', () => {
    const before = { trusted: true, asks: ['ags.yaml:1: reveal: see hidden files of the project: .env.test'] };
    const [moved, added, foreign] = [
      'ags.yaml:9: reveal: see hidden files of the project: .env.test',
      'ags.yaml:3: network.allow: reach a.test',
      'ags.yaml:4: network.allow: reach b.test',
    ] as const;
    expect([
      isCovered(before, [moved, added], [rule({})]),
      isCovered(before, [moved, added, foreign], [rule({})]),
      isCovered({ ...before, trusted: false }, [moved, added], [rule({})]),
      isCovered(before, ['ags.yaml:9: reveal: see hidden files of the project: .env'], [rule({})]),
    ]).toEqual([true, false, false, false]);
  });

  test('--project does not approve requests that were added after an approval', async () => {
    at.project('reveal: [.env.test]\n');
    at.trust(await at.asks());
    at.project('reveal: [.env.test, .env]\n');
    await ags('allow --project a.test');
    expect((await at.asks()).length).toBe(3);
  });

  test('--always edits the user’s file, and changes sandboxes of all projects', async () => {
    at.user('# me\n');
    const [here, there] = [run(), run({ project: '/elsewhere' })];
    expect(await ags('allow --always a.test')).toBe(
      `Allowed a.test in ~/.config/ags/config.yaml.\nChanged in running sandboxes: ${[here.id, there.id].toSorted().join(', ')}\n`,
    );
    expect(fs.readFileSync(at.input.userConfigFile, 'utf8')).toBe('# me\n\nnetwork:\n  allow:\n    - a.test\n');
    expect([here.rules, there.rules]).toEqual([[rule({})], [rule({})]]);
    expect((await at.load()).network.rules).toEqual([rule({ origin: `${at.input.userConfigFile}:5` })]);
  });

  test('--always creates the user’s file, and writes through a link to it', async () => {
    await ags('allow --always a.test');
    const file = at.input.userConfigFile;
    expect(fs.statSync(file).mode & 0o777).toBe(0o600);
    const real = join(at.input.home, 'dotfiles.yaml');
    fs.renameSync(file, real);
    fs.symlinkSync(real, file);
    await ags('allow --always b.test');
    expect([fs.lstatSync(file).isSymbolicLink(), fs.readFileSync(real, 'utf8')]).toEqual([
      true,
      'network:\n  allow:\n    - a.test\n    - b.test\n',
    ]);
  });

  test('--project does not write through a link', async () => {
    fs.writeFileSync(join(at.input.projectDir, 'other.yaml'), 'hide: [x]\n');
    fs.symlinkSync('other.yaml', join(at.input.projectDir, 'ags.yaml'));
    await expect(ags('allow --project a.test')).rejects.toMatchObject({
      code: 'config.invalid',
      message: 'ags.yaml is a symbolic link, and ags does not write through links.',
    });
    expect(fs.readFileSync(join(at.input.projectDir, 'other.yaml'), 'utf8')).toBe('hide: [x]\n');
  });

  test.each([
    ['*.a.test', 'x.a.test', true],
    ['*.a.test', '*.x.a.test', true],
    ['*.a.test', 'a.test', false],
    ['a.test', '*.a.test', false],
    ['a.test', 'a.test:8443', false],
    ['POST a.test', 'a.test', false],
    ['a.test', 'POST a.test/x', true],
    ['GET,POST a.test', 'POST a.test', true],
    ['a.test/x/*', 'a.test/x/y', true],
    ['a.test/x/*', 'a.test', false],
    ['*.b.a.test', 'xb.a.test', false],
  ])('with %s denied, allowing %s is refused: %s', async (denied, allowed, refused) => {
    at.user(JSON.stringify({ network: { deny: [denied] } }));
    const outcome = ags(['allow', '--project', allowed]).then(
      () => null,
      (error: unknown) => error,
    );
    if (refused)
      expect(await outcome).toMatchObject({
        code: 'usage.invalid',
        message: `${allowed} stays denied: the deny rule "${denied}" wins (${at.input.userConfigFile}:1).`,
        hint: `Remove that line first: ${at.input.userConfigFile}:1`,
      });
    else expect(await outcome).toBe(null);
    expect(fs.existsSync(join(at.input.projectDir, 'ags.yaml'))).toBe(!refused);
  });

  test('a deny rule of the running sandbox refuses the new rule', async () => {
    const { id, rules } = run({ rules: [rule({ action: 'deny', host: '*.test', origin: '--deny' })] });
    await expect(ags('allow a.test')).rejects.toMatchObject({
      message: `a.test stays denied: the deny rule "*.test" of ${id} wins (--deny).`,
      hint: 'That rule lasts as long as the sandbox. Start another sandbox without it.',
    });
    expect(rules.length).toBe(1);
  });

  test('allow and deny move a rule within the same file', async () => {
    at.project('network:\n  deny:\n    - b.test # no\n    - a.test\n');
    expect(await ags('allow --project a.test')).toBe(
      'Allowed a.test in ags.yaml.\nRemoved from the denied rules: a.test\n',
    );
    expect(read()).toBe('network:\n  allow:\n    - a.test\n  deny:\n    - b.test # no\n');
    await expect(ags('allow --always b.test')).rejects.toMatchObject({ code: 'usage.invalid' });
    expect(await ags('deny --project a.test')).toBe(
      'Denied a.test in ags.yaml.\nRemoved from the allowed rules: a.test\n',
    );
    expect(read()).toBe('network:\n  allow:\n  deny:\n    - b.test # no\n    - a.test\n');
    expect(await at.asks()).toEqual([]);
  });

  test('--json lists the changes', async () => {
    const { id } = run();
    expect(JSON.parse(await ags('allow --json --project a.test'))).toEqual({
      scope: 'project',
      rules: [{ action: 'allow', rule: 'a.test' }],
      reached: [id],
      file: {
        label: 'ags.yaml',
        path: join(at.input.projectDir, 'ags.yaml'),
        added: ['a.test'],
        dropped: [],
        trust: 'approved',
      },
      networkOff: false,
    });
  });
});

describe('ags deny', () => {
  test('changes running sandboxes, and keeps an approval', async () => {
    const { id, rules } = run();
    expect(await ags('deny a.test')).toBe(`Denied a.test in ${id}, until it ends.\n`);
    expect(rules).toEqual([rule({ action: 'deny', origin: 'ags deny' })]);
    at.project('reveal: [.env.test]\n');
    at.trust(await at.asks());
    await ags('deny --project a.test');
    expect((await at.load()).network.rules).toEqual([rule({ action: 'deny', origin: 'ags.yaml:5' })]);
  });
});

describe('ags net', () => {
  test.each([
    ['net', 'ags net needs a word: rules, log, asks, test, lock', 'For example: ags net rules'],
    ['net rule', 'ags net has no "rule".', 'Did you mean: ags net rules'],
    ['net \u001b[2J', String.raw`ags net has no "\x1b[2J".`, 'For example: ags net rules'],
    ['net rules --yes', 'ags net rules does not take --yes.', 'See: ags net --help'],
    ['net log a b', 'ags net log takes one task at most.', 'See: ags net --help'],
    ['net lock --yes --only a.test', '--yes and --only exclude each other.', undefined],
  ])('%j is refused', async (line, message, hint) => {
    await expect(ags(line)).rejects.toMatchObject({ code: 'usage.invalid', message, hint });
  });

  test('rules are shown with their origin', async () => {
    at.user('network: { defaults: false, presets: [npm, crates], deny: [gist.github.com] }\n');
    at.project('network:\n  allow:\n    - a.test\n    - GET api.a.test/v1/*\n');
    expect(await ags('net rules')).toBe(`on: sandboxes reach only hosts that these rules allow.

Denied, even if another rule allows it
  gist.github.com  ~/.config/ags/config.yaml:1

Allowed
  a.test               ags.yaml:3
  GET api.a.test/v1/*  ags.yaml:4

Allowed by built-in lists
  npm     *.npmjs.org, *.npmjs.com, *.yarnpkg.com
  crates  crates.io, *.crates.io, static.rust-lang.org, sh.rustup.rs
`);
    expect(JSON.parse(await ags('net rules --json'))).toMatchObject({
      mode: 'on',
      rules: expect.arrayContaining([
        { rule: 'a.test', ...rule({ origin: 'ags.yaml:3' }) },
        { rule: '*.npmjs.org', ...rule({ host: '*.npmjs.org', origin: 'built-in npm' }) },
      ]) as unknown,
    });
    at.user('network: { defaults: false, mode: off }\n');
    at.project('');
    expect(await ags('net rules')).toBe(
      'off: sandboxes reach no host, even if a rule allows it.\n\nNo rule allows anything.\n',
    );
  });

  test('rules of a running sandbox are its own', async () => {
    const { id } = run({ rules: [rule({ origin: '--allow' })], mode: 'record' });
    const text = `record: these rules apply; ags asks about hosts without a rule and records them.\n\nAllowed\n  a.test  --allow\n`;
    expect([await ags(`net rules --task ${id}`), await ags(`net rules ${id}`)]).toEqual([text, text]);
  });

  test('all built-in lists fit 80 columns', async () => {
    expect((await ags('net rules')).split('\n').filter((line) => line.length > 80)).toEqual([]);
  });

  test('asks of running sandboxes are listed', async () => {
    expect(await ags('net asks')).toBe('No sandbox of this project is running.\n');
    const quiet = run();
    expect(await ags('net asks')).toBe('No connection waits for an answer in 1 running sandbox.\n');
    const { id } = run({
      asks: [
        { host: 'a.test', port: 443, sinceMs: NOW.getTime() - 5000, count: 3 },
        { host: 'b.test\u001b[2J', port: 8443, sinceMs: NOW.getTime() - 60_000, count: 1 },
      ],
    });
    expect(await ags(`net asks ${id}`)).toBe(
      `a.test                3 times  since 5s  ${id}\nb.test\\x1b[2J:8443  1 time   since 1m  ${id}\n\nTo allow it: ags allow a.test\n`.replace(
        'a.test                3',
        `${'a.test'.padEnd(String.raw`b.test\x1b[2J:8443`.length)}  3`,
      ),
    );
    expect(JSON.parse(await ags('net asks --json'))).toMatchObject({
      running: expect.arrayContaining([quiet.id, id]) as unknown,
      asks: [
        { task: id, host: 'a.test', port: 443, count: 3 },
        { task: id, host: 'b.test\u001b[2J' },
      ],
    });
  });
});

describe('logs', () => {
  function decision(more: Partial<Decision>): Decision {
    return {
      at: '2026-03-04T05:06:07.000Z',
      run: 'r',
      by: 'connect',
      host: 'a.test',
      port: 443,
      verdict: 'allowed',
      reason: 'ags.yaml:3',
      bytesOut: 0,
      bytesIn: 0,
      ms: 1,
      ...more,
    };
  }

  function record(task: string, decisions: readonly Decision[], more: { project?: string; at?: number } = {}): string {
    const startedAtMs = more.at ?? NOW.getTime();
    const file = networkLogFile(at.input.stateDir, task, startedAtMs);
    const log = openNetworkLog(file, {
      task,
      project: more.project ?? fs.realpathSync(at.input.projectDir),
      startedAt: new Date(startedAtMs).toISOString(),
    });
    for (const one of decisions) log.append(one);
    log.close();
    return file;
  }

  const UNKNOWN = { verdict: 'denied', unknown: true, reason: 'no rule covers it' } as const;

  test('ags net log shows the latest run of this project in aligned columns', async () => {
    await expect(ags('net log')).rejects.toMatchObject({
      code: 'task.not-found',
      message: 'No run of this project has used the network yet.',
    });
    record('old-1111', [decision({ host: 'old.test' })], { at: 5 });
    record('other-2222', [decision({ host: 'other.test' })], { project: '/elsewhere', at: NOW.getTime() + 5 });
    record('make-3333', [
      decision({}),
      decision({
        host: 'evil.test\u001b[2J\n',
        verdict: 'denied',
        reason: 'no rule covers it\u202e',
        program: `\u0007${'x'.repeat(100)}`,
      }),
      decision({
        host: `${'y'.repeat(60)}.test`,
        port: 8443,
        method: 'GET',
        path: '/z',
        verdict: 'failed',
        reason: 'refused',
      }),
    ]);
    const text = await ags('net log');
    expect(text.split('\n').map((line) => line.trimEnd())).toEqual([
      'make-3333, 2026-03-04',
      `05:06:07  allowed  ${'a.test:443'.padEnd(65)}1ms      ags.yaml:3`,
      String.raw`05:06:07  denied   ${String.raw`evil.test\x1b[2J\n:443`.padEnd(36)}\x07xxxxxxx…                 1ms      no rule covers it<U+202E>`,
      `05:06:07  failed   ${`${'y'.repeat(33)}…`.padEnd(65)}1ms      refused`,
      '',
      '1 allowed, 1 denied, 1 failed. To allow a host: ags allow <host>',
      '',
    ]);
    expect((await ags('net log --denied')).split('\n')[1]).toContain('evil.test');
    expect(await ags('net log old')).toContain('old.test');
    expect(JSON.parse(await ags('net log make-3333 --denied --json'))).toMatchObject({
      run: { task: 'make-3333' },
      decisions: [{ verdict: 'denied' }, { verdict: 'failed' }],
      lost: 0,
      brokenAt: null,
    });
    await expect(ags('net log nothing')).rejects.toMatchObject({
      code: 'task.not-found',
      message: 'There is no log of a task "nothing".',
    });
  });

  test('a damaged log is reported', async () => {
    const file = record('make-3333', [decision({}), decision({ host: 'b.test' }), decision({})]);
    fs.writeFileSync(file, fs.readFileSync(file, 'utf8').replace('b.test', 'x.test'));
    expect(await ags('net log')).toContain(`The log is damaged at line 4; the rest is not shown: ${file}\n`);
  });

  test('ags net log --follow ends with the run', async () => {
    const { id } = run();
    const followed = ags('net log --follow --json');
    const log = openNetworkLog(networkLogFile(at.input.stateDir, id, NOW.getTime()), {
      task: id,
      project: fs.realpathSync(at.input.projectDir),
      startedAt: '',
    });
    log.append(decision({}));
    log.append(decision({ host: 'b.test' }));
    await new Promise((resolve) => setTimeout(resolve, 300));
    log.append(decision({ host: 'c.test' }));
    log.close();
    const file = join(at.input.stateDir, 'tasks', id, 'run.json');
    fs.writeFileSync(file, fs.readFileSync(file, 'utf8').replace(/"startTicks":"[^"]*"/, '"startTicks":"gone"'));
    const lines = (await followed)
      .trim()
      .split('\n')
      .map((line) => (JSON.parse(line) as Decision).host);
    expect(lines).toEqual(['a.test', 'b.test', 'c.test']);
  });

  const RECORDED = [
    decision({ host: 'b.test', ...UNKNOWN, program: 'curl', at: '2026-03-04T05:00:00.000Z' }),
    decision({ host: 'b.test', ...UNKNOWN, program: 'node', at: '2026-03-04T04:00:00.000Z' }),
    decision({ host: 'c.test', port: 8443, program: 'git', reason: 'ags allow' }),
    decision({ host: 'github.com' }),
    decision({ host: 'denied.test', verdict: 'denied', reason: 'no rule covers it' }),
    decision({ host: 'never.test', ...UNKNOWN }),
    decision({ host: 'db', port: 5432, by: 'tcp' }),
    decision({ host: 'looked-up.test', by: 'name', ...UNKNOWN }),
    decision({ host: 'bad host\n', ...UNKNOWN }),
  ];

  const SHOWN = `Hosts without a rule, used by 1 run of this project
  b.test       2×  curl, node  2026-03-04 04:00
  c.test:8443  1×  git         2026-03-04 05:06

`;

  test('ags net lock asks about each recorded host without a rule, and writes the chosen ones', async () => {
    at.user('network: { deny: [never.test] }\n');
    at.project('# ours\nnetwork:\n  mode: on # for now\n');
    record('make-3333', RECORDED);
    record('other-2222', [decision({ host: 'other.test', ...UNKNOWN })], { project: '/elsewhere' });
    expect(await ags('net lock', ['y', 'n'])).toBe(
      `${SHOWN}Allow b.test from now on? [y/N/q] \nAllow c.test:8443 from now on? [y/N/q] \nWrote 1 rule into ags.yaml: b.test\nNext: run it again without --network record to block all other hosts.\n`,
    );
    expect(read()).toBe('# ours\nnetwork:\n  allow:\n    - b.test\n  mode: on # for now\n');
    expect(await at.asks()).toEqual([]);
    expect(await ags('net lock', ['q'])).toContain('Nothing was written.\n');
    expect(await ags('net lock --only c.test:8443')).toContain('Wrote 1 rule into ags.yaml: c.test:8443\n');
    expect(await ags('net lock')).toBe('Every host used by 1 run of this project already has a rule.\n');
  });

  test('ags net lock without a terminal needs a flag to write', async () => {
    expect(await ags('net lock')).toBe(
      'No run of this project has used the network yet. To record one: ags exec --network record -- <command>\n',
    );
    record('make-3333', RECORDED);
    await expect(ags('net lock')).rejects.toMatchObject({ code: 'usage.no-terminal' });
    await expect(ags('net lock --only x.test')).rejects.toMatchObject({
      code: 'usage.invalid',
      message: '"x.test" is not in the list of recorded hosts without a rule.',
    });
    expect(JSON.parse(await ags('net lock --json'))).toMatchObject({ runs: 1, written: [], wanted: { length: 3 } });
    expect(fs.existsSync(join(at.input.projectDir, 'ags.yaml'))).toBe(false);
    expect(JSON.parse(await ags('net lock --yes --json'))).toMatchObject({
      written: ['b.test', 'c.test:8443', 'never.test'],
      trust: 'approved',
    });
    expect(read()).toBe('network:\n  allow:\n    - b.test\n    - "c.test:8443"\n    - never.test\n');
  });

  test('only the part of a log before its damage is used', async () => {
    const file = record('make-3333', RECORDED);
    fs.writeFileSync(file, fs.readFileSync(file, 'utf8').replace('"c.test"', '"x.test"'));
    expect(JSON.parse(await ags('net lock --json'))).toMatchObject({ wanted: [{ host: 'b.test' }], damaged: [file] });
  });
});

describe.each(USUAL)('as %s', (caller) => {
  test('simultaneous commands all add their rule to the file, which keeps its owner', async () => {
    using machine = createMachine(caller, { git: false, files: { 'ags.yaml': '# ours\nhide: [x]\n' } });
    const owner = caller === 'root' ? 1234 : machine.uid;
    if (caller === 'root') {
      fs.lchownSync(machine.project, owner, owner);
      fs.lchownSync(join(machine.project, 'ags.yaml'), owner, owner);
    }
    const hosts = ['a.test', 'b.test', 'c.test', 'd.test'];
    const results = await Promise.all(hosts.map((host) => machine.ags(['allow', '--project', host])));
    expect(results.map(({ code, stderr }) => [code, stderr])).toEqual(hosts.map(() => [0, '']));
    expect(
      machine
        .read('ags.yaml')
        .split('\n')
        .toSorted()
        .filter((line) => line.includes('.test')),
    ).toEqual(hosts.map((host) => `    - ${host}`));
    const { uid, mode } = fs.statSync(join(machine.project, 'ags.yaml'));
    expect([uid, mode & 0o777]).toEqual([owner, 0o644]);
    const rules = await machine.ags(['net', 'rules', '--json']);
    expect(rules.code).toBe(0);
    const plain = await machine.ags(['config', 'network.allow']);
    expect([plain.code, plain.stdout.split('\n').length]).toEqual([0, 5]);
    const bad = await machine.ags(['allow', 'no host at all']);
    expect([bad.code, bad.stderr]).toEqual([
      2,
      'ags: "no host at all" is not a rule: it is not a host.\n     Expected: a host such as github.com, *.npmjs.org, example.com:8443 or GET api.example.com/v1/*.\n',
    ]);
    const none = await machine.ags(['allow', '--json', 'a.test']);
    expect([none.code, JSON.parse(none.stderr)]).toMatchObject([3, { error: { code: 'task.not-found' } }]);
  });

  test('ags cleanup removes old logs, except those of a running sandbox', async () => {
    using machine = createMachine(caller);
    const day = 86_400_000;
    const made = run({ answers: false });
    fs.mkdirSync(machine.stateDir, { recursive: true });
    fs.cpSync(join(at.input.stateDir, 'tasks'), join(machine.stateDir, 'tasks'), { recursive: true });
    fs.mkdirSync(join(machine.stateDir, 'network'), { mode: 0o700 });
    const [old, going, recent] = [
      networkLogFile(machine.stateDir, 'old-1111', Date.now() - 31 * day),
      networkLogFile(machine.stateDir, made.id, Date.now() - 31 * day),
      networkLogFile(machine.stateDir, 'new-2222', Date.now() - 29 * day),
    ];
    for (const file of [old, going, recent]) fs.writeFileSync(file, '{}\n');
    machine.write('x', '');
    const done = await machine.ags(['cleanup', '--json']);
    const { removed } = JSON.parse(done.stdout) as { removed: { name: string; why: string }[] };
    expect(removed.filter(({ name }) => name.includes('/network/')).map(({ name, why }) => [name, why])).toEqual([
      [old, 'old network log'],
    ]);
    expect([old, going, recent].map((file) => fs.existsSync(file))).toEqual([false, true, true]);
  });

  test('the user’s file is created readable only by the user', async () => {
    using machine = createMachine(caller);
    expect((await machine.ags(['deny', '--always', 'a.test'])).code).toBe(0);
    const file = join(machine.home, '.config/ags/config.yaml');
    const [made, dir] = [fs.statSync(file), fs.statSync(dirname(file))];
    expect([made.uid, made.mode & 0o777, dir.uid, dir.mode & 0o777]).toEqual([machine.uid, 0o600, machine.uid, 0o700]);
    expect(fs.readFileSync(file, 'utf8')).toBe('network:\n  deny:\n    - a.test\n');
  });
});
