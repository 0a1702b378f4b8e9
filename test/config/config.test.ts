import { execFileSync } from 'node:child_process';
import * as fs from 'node:fs';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ENV_PASS, ETC, HIDE, PATH_ENV, PLACES, TOOL_DIRS } from '../../src/config/defaults.ts';
import type { ConfigFlags } from '../../src/config/effective.ts';
import { loadConfig } from '../../src/config/load.ts';
import { suggest } from '../../src/config/file/suggest.ts';
import { createFixture, GiB, type Fixture } from './config-fixture.ts';

let at: Fixture;
beforeEach(() => {
  at = createFixture();
});
afterEach(() => at[Symbol.dispose]());

describe('layers', () => {
  test('without files the built-in values apply', async () => {
    const config = await at.load();
    const { origins, ...values } = config;
    expect(values).toEqual({
      user: 1001,
      backend: 'auto',
      docker: { enabled: false, registries: [] },
      compose: null,
      home: { keep: 'task' },
      workspace: 'auto',
      image: null,
      runtime: null,
      toolDefaults: true,
      toolDirs: TOOL_DIRS,
      mounts: PLACES.map((path) => ({ path, optional: true })),
      etc: ETC,
      envPass: ENV_PASS,
      pathEnv: PATH_ENV,
      envSet: {},
      hide: HIDE,
      prices: {},
      reveal: [],
      limits: {
        processes: 2048,
        memoryBytes: 6 * GiB,
        openFiles: 65_536,
        fileBytes: 20 * GiB,
        diskBytes: 20 * GiB,
        tmpBytes: GiB,
        cpuSeconds: null,
        wallSeconds: null,
        cpus: null,
      },
      kernel: { ptrace: false, unixSockets: true },
      network: {
        mode: 'on',
        presets: ['default'],
        rules: [],
        addresses: [],
        tcp: [],
        publish: [],
        upstreams: [],
        dns: [],
        limits: { connections: 512, perSecond: 200, bytesOut: 10 * GiB },
        askSeconds: 60,
      },
      secrets: [],
      hooks: { use: [], commands: [], timeoutSeconds: 10 },
      setup: { run: [], inputs: null, timeoutSeconds: 1800 },
      services: [],
      agents: {},
      tasks: {
        agent: null,
        model: null,
        parallel: null,
        seconds: null,
        costMicros: null,
        turns: null,
        tokens: null,
        budgets: [],
      },
      checks: { run: [], timeoutSeconds: 1800 },
      mergeCheck: false,
      risky: [],
      files: [],
    });
    expect([...new Set(Object.values(origins))]).toEqual(['built-in']);
    expect(fs.readdirSync(at.input.home)).toEqual(['project']);
  });

  test('later layers win, lists append, and each value names its origin', async () => {
    at.user(
      'limits:\n  memory: 50%\n  time: 2h\nhide: [notes.txt]\nenv:\n  set: { A: user, B: user }\nmounts:\n  - path: ~/models/\n',
    );
    at.project(
      '# comment\nlimits:\n  time: 1h30m\n  disk: 1g\nhide:\n  - "*.sqlite"\n  - notes.txt\nenv:\n  set:\n    B: project\n    PORT: 3000\nworkspace: copy\n',
    );
    const config = await at.load({
      limits: { time: '5m' },
      envSet: { B: 'flag' },
      reveal: ['.env.test'],
      envPass: ['FOO'],
      mounts: ['/opt/../srv/data'],
    });
    expect({
      time: config.limits.wallSeconds,
      memory: config.limits.memoryBytes,
      disk: config.limits.diskBytes,
      envSet: config.envSet,
      hide: config.hide.slice(HIDE.length),
      reveal: config.reveal,
      envPass: config.envPass.slice(ENV_PASS.length),
      mounts: config.mounts.slice(PLACES.length),
      workspace: config.workspace,
      files: config.files,
    }).toEqual({
      time: 300,
      memory: 4 * GiB,
      disk: GiB,
      envSet: { A: 'user', B: 'flag', PORT: '3000' },
      hide: ['notes.txt', '*.sqlite'],
      reveal: ['.env.test'],
      envPass: ['FOO'],
      mounts: [
        { path: join(at.input.home, 'models'), optional: false },
        { path: '/srv/data', optional: false },
      ],
      workspace: 'copy',
      files: [at.input.userConfigFile, join(at.input.projectDir, 'ags.yaml')],
    });
    const file = at.input.userConfigFile;
    const expected = {
      'limits.time': '--limit time',
      'limits.memory': `${file}:2`,
      'limits.disk': 'ags.yaml:4',
      'limits.tmp': 'built-in',
      'env.set.A': `${file}:6`,
      'env.set.B': '--env',
      'env.set.PORT': 'ags.yaml:11',
      [`hide[${HIDE.length}]`]: `${file}:4`,
      [`hide[${HIDE.length + 1}]`]: 'ags.yaml:6',
      'reveal[0]': '--reveal',
      [`env.pass[${ENV_PASS.length}]`]: '--env',
      [`mounts[${PLACES.length}]`]: `${file}:8`,
      [`mounts[${PLACES.length + 1}]`]: '--mount',
      workspace: 'ags.yaml:12',
    };
    expect(Object.fromEntries(Object.keys(expected).map((key) => [key, config.origins[key]]))).toEqual(expected);
  });

  test('tools.remove removes everything at or below a path, from any layer', async () => {
    at.user('tools:\n  add: [.local/share/foo]\n');
    at.project('tools:\n  remove: [.cargo, .local/share/foo]\n');
    const { toolDirs } = await at.load();
    expect(toolDirs).toEqual(TOOL_DIRS.filter((path) => !path.startsWith('.cargo/')));
    at.user('tools:\n  defaults: false\n  add: [.local/share/bar]\n');
    expect((await at.load()).toolDirs).toEqual(['.local/share/bar']);
  });

  test('a section whose keys are all commented out is empty', async () => {
    at.project('limits:\n#  memory: 4g\nhide:\nenv:\n  set:\n');
    expect((await at.load()).limits.memoryBytes).toBe(6 * GiB);
  });

  test('a list of setup commands is short for setup.run', async () => {
    at.user('setup: [npm ci, npm run build]\n');
    expect((await at.load()).setup).toMatchObject({ run: ['npm ci', 'npm run build'], inputs: null });
    at.user('setup: [npm ci, 5]\n');
    expect((await at.problem()).message).toContain(':1:17: setup.run[1]: expected a command, found 5');
  });

  test('a built-in pattern that the user repeats also hides tracked files', async () => {
    const [first = ''] = HIDE;
    at.project(`hide: ['${first}', '${first}']\n`);
    const config = await at.load();
    expect(config.hide).toEqual([...HIDE, first]);
    expect(config.origins[`hide[${HIDE.length}]`]).toBe('ags.yaml:1');
  });

  test('no built-in tool directory holds credentials', () => {
    const secret =
      /credential|\.ssh|\.gnupg|\.aws|\.kube|keyring|settings\.xml|\.netrc|gcloud|^\.config$|^\.local$|^\.local\/share$|^\.cargo$|^\.m2$|^\.dotnet$|^\.gem$|^\.stack$|^\.cabal$|^\.julia$|^\.gradle$|share\/uv$/;
    expect(TOOL_DIRS.filter((path) => secret.test(path))).toEqual([]);
    expect(
      ETC.filter((name) =>
        /^(shadow|gshadow|sudoers|ssh|ssl|pki|maven|passwd|group|environment|gitconfig|npmrc|pip\.conf|wgetrc|machine-id)$/.test(
          name,
        ),
      ),
    ).toEqual([]);
    for (const list of [TOOL_DIRS, ETC, HIDE, ENV_PASS, PATH_ENV]) expect(new Set(list).size).toBe(list.length);
  });
});

describe('errors', () => {
  const known =
    'user, backend, image, dockerfile, runtime, docker, compose, workspace, home, tools, mounts, etc, env, hide, reveal, limits, kernel, network, secrets, hooks, gateway, setup, tasks, agents, prices, services, checks, merge, review';
  test.each([
    ['bogus: 1\n', `ags.yaml:1:1: unknown key "bogus"; known keys: ${known}`],
    ['hide: []\n\nmount: []\n', 'ags.yaml:3:1: unknown key "mount" (did you mean "mounts"?)'],
    ['limits:\n  open_files: 100\n', 'ags.yaml:2:3: unknown key "open_files" in limits (did you mean "openFiles"?)'],
    ['memory: 4g\n', 'ags.yaml:1:1: unknown key "memory" (did you mean "limits.memory"?)'],
    [
      'limits:\n  memory: lots\n',
      'ags.yaml:2:11: limits.memory: expected a size such as 512m or 4g, or a share of the memory such as 50%, found "lots"',
    ],
    [
      'limits:\n  memory: 150%\n',
      'ags.yaml:2:11: limits.memory: expected a size such as 512m or 4g, or a share of the memory such as 50%, found "150%"',
    ],
    ['limits: { tmp: 1k }\n', 'ags.yaml:1:16: limits.tmp: "1k" is too little to run anything; the minimum is 1m'],
    [
      'limits:\n  time: 90\n',
      'ags.yaml:2:9: limits.time: expected a time such as 90s, 5m, 2h or 1d, or none, found 90',
    ],
    ['user: 0\n', 'ags.yaml:1:7: user: expected a whole number from 1 to 65533, found 0'],
    ['kernel:\n  ptrace: yes\n', 'ags.yaml:2:11: kernel.ptrace: expected true or false, found "yes"'],
    ['workspace: fast\n', 'ags.yaml:1:12: workspace: expected auto, overlay or copy, found "fast"'],
    [
      'mounts:\n  - {}\n',
      'ags.yaml:2:5: mounts[0].path: expected an absolute path, or one that begins with ~/, found nothing',
    ],
    [
      'mounts:\n  - path: models\n',
      'ags.yaml:2:11: mounts[0].path: expected an absolute path, or one that begins with ~/, found "models"',
    ],
    [
      'tools:\n  add: [../other]\n',
      'ags.yaml:2:9: tools.add[0]: expected a path relative to your home, such as .local/share/tool, found "../other"',
    ],
    [
      'env:\n  pass: ["*"]\n',
      'ags.yaml:2:10: env.pass[0]: expected the name of a variable, or a prefix that ends in _*, found "*"',
    ],
    [
      'env:\n  set:\n    1A: x\n',
      'ags.yaml:3:5: env.set.1A: expected the name of a variable: letters, digits and _, not a digit first',
    ],
    [
      'hide: ["!.env"]\n',
      'ags.yaml:1:8: hide[0]: expected a pattern such as *.pem, without "!" in front, found "!.env"',
    ],
    [
      'hide: ["key[0-9]"]\n',
      'ags.yaml:1:8: hide[0]: "key[0-9]": in a pattern only *, ** and ? are special; use ? in place of a bracket',
    ],
    ['hide: ["../x"]\n', 'ags.yaml:1:8: hide[0]: "../x": a pattern may not contain "..", "." or empty names'],
    [
      'limits:\n  memory:\n',
      'ags.yaml:2:10: limits.memory: expected a size such as 512m or 4g, or a share of the memory such as 50%, found nothing',
    ],
    [
      'setup: npm ci\n',
      'ags.yaml:1:8: setup.run: expected a list of commands, found "npm ci". Write a list: setup: [npm ci]',
    ],
    [
      'setup: { run: "npm ci && x" }\n',
      'ags.yaml:1:15: setup.run: expected a list of commands, found "npm ci && x". Write a list: run: ["npm ci && x"]',
    ],
    [
      'checks: npm test\n',
      'ags.yaml:1:9: checks: expected a list of commands, or the keys run and timeout, found "npm test". Write a list: checks: [npm test]',
    ],
    ['checks:\n  - name: types\n', 'ags.yaml:2:5: checks[0].run: expected a command such as npm test, found nothing'],
    [
      'checks: { run: [a, {name: types}], timeout: 5m }\n',
      'ags.yaml:1:20: checks.run[1].run: expected a command such as npm test, found nothing',
    ],
    ['checks: { runs: [a] }\n', 'ags.yaml:1:11: unknown key "runs" in checks (did you mean "run"?)'],
    // A list of texts is not what belongs here.
    ['mounts: /opt\n', 'ags.yaml:1:9: mounts: expected a list of entries such as - path: /opt/models, found "/opt"'],
    ['env: FOO\n', 'ags.yaml:1:6: env: expected keys, each with its value (pass, set), found "FOO"'],
    ['just text\n', 'ags.yaml:1:1: expected keys, each with its value, found "just text"'],
    ['hide: []\nhide: []\n', 'ags.yaml:2:1: duplicate key "hide"'],
    ['hide: []\n---\nhide: []\n', 'ags.yaml:2:1: a second document begins here; only one is allowed'],
    ['hide: &a []\n', 'ags.yaml:1:7: anchors (&name) cannot be used here'],
    [
      'hide: [*.pem]\n',
      'ags.yaml:1:8: aliases (*name) cannot be used here; put a pattern that begins with * in quotes',
    ],
    ['hide: !!set {}\n', 'ags.yaml:1:7: tags (!name) cannot be used here; put a text that begins with ! in quotes'],
    ['%YAML 1.1\n---\nkernel: {ptrace: yes}\n', 'ags.yaml:1:1: directives (%...) cannot be used here'],
    ['hide:\n  - "a\n', 'ags.yaml:3:1: not valid YAML: Missing closing "quote'],
    ['hide: ["\u001b[2J"]\n', 'ags.yaml:1:9: \\x1b is a control character, which is not allowed in this file'],
    ['hide: ["\\e[2J"]\n', 'ags.yaml:1:8: "\\x1b[2J" has invisible characters: U+001B'],
    ['env: { set: { __proto__: x } }\n', 'ags.yaml:1:15: "__proto__" cannot be used as a key'],
    ['__proto__: { user: 0 }\n', 'ags.yaml:1:1: "__proto__" cannot be used as a key'],
  ])('%j is refused with its line', async (text, message) => {
    at.project(text);
    expect(await at.problem()).toEqual({ code: 'config.invalid', message });
  });

  test('all problems of a file are reported together, in file order', async () => {
    at.project('limits:\n  memory: lots\nmount: []\nuser: root\n');
    expect((await at.problem()).message.split('\n').map((line) => line.split(': ')[0])).toEqual([
      'ags.yaml:2:11',
      'ags.yaml:3:1',
      'ags.yaml:4:7',
    ]);
  });

  test("problems of the user's file name its path", async () => {
    at.user('limits:\n  memry: 4g\n');
    expect(await at.problem()).toEqual({
      code: 'config.invalid',
      message: `${at.input.userConfigFile}:2:3: unknown key "memry" in limits (did you mean "memory"?)`,
    });
  });

  test('a file that is not UTF-8 is refused with the line number', async () => {
    at.project(Buffer.concat([Buffer.from('# ok ä\nhide: ["'), Buffer.from([0xe4]), Buffer.from('"]\n')]));
    expect(await at.problem()).toEqual({
      code: 'config.invalid',
      message: 'ags.yaml:2:1: this line is not UTF-8 text',
    });
  });

  test('a byte order mark and Windows line endings are accepted', async () => {
    at.project('\ufeffuser: 1001\r\nhide:\r\n  - secret.txt\r\n');
    expect((await at.load()).origins[`hide[${HIDE.length}]`]).toBe('ags.yaml:3');
  });

  const DEEP = 'this is nested too deeply';
  const LONG = 'the file is too long';
  test.each([
    ['flow lists', `hide: ${'['.repeat(200_000)}`, `ags.yaml:1:15: ${DEEP}`],
    ['flow maps', `hide: ${'{a: '.repeat(50_000)}`, `ags.yaml:1:39: ${DEEP}`],
    ['block lists in one line', `${'- '.repeat(100_000)}a`, `ags.yaml:1:17: ${DEEP}`],
    ['explicit keys', '? '.repeat(2000), 'ags.yaml:1:1: keys with "?" in front cannot be used here'],
    [
      'growing indentation',
      Array.from({ length: 600 }, (_, i) => `${' '.repeat(i)}a:`).join('\n'),
      `ags.yaml:66:1: ${DEEP}`,
    ],
    ['repeated keys', 'a: 1\n'.repeat(40_000), `ags.yaml:4286:4: ${LONG}`],
    ['quotes', '"'.repeat(200_000), `ags.yaml:1:59999: ${LONG}`],
  ])('a bomb of %s is refused before the YAML library expands it', async (_, text, message) => {
    at.project(text);
    expect(await at.problem()).toEqual({ code: 'config.invalid', message });
  });

  test.each<[ConfigFlags, string]>([
    [
      { limits: { memory: 'lots' } },
      '--limit memory: expected a size such as 512m or 4g, or a share of the memory such as 50%, found "lots"',
    ],
    [
      { limits: { memmory: '4g' } },
      '--limit: expected one of processes, memory, openFiles, fileSize, disk, tmp, cpu, time, cpus (did you mean "memory"?), found "memmory"',
    ],
    [{ limits: { processes: '4' } }, '--limit processes: "4" is too little to run anything; the minimum is 16'],
    [{ backend: 'lxc' }, '--backend: expected auto, native, docker or podman, found "lxc"'],
    [{ workspace: 'zip' }, '--workspace: expected auto, overlay or copy, found "zip"'],
    [{ mounts: ['relative'] }, '--mount: expected an absolute path, or one that begins with ~/, found "relative"'],
    [{ mounts: ['/proc/1'] }, '--mount: "/proc/1" cannot be shown: the sandbox has its own'],
    [{ envPass: ['A B'] }, '--env: expected the name of a variable, or a prefix that ends in _*, found "A B"'],
    [
      { envSet: { '': 'x' } },
      '--env: expected the name of a variable: letters, digits and _, not a digit first, found ""',
    ],
    [{ reveal: ['../x'] }, '--reveal: "../x": a pattern may not contain "..", "." or empty names'],
  ])('the flags %j are a usage error', async (flags, message) => {
    expect(await at.problem(flags)).toEqual({ code: 'usage.invalid', message });
  });

  test('"did you mean" suggests only similar names', () => {
    expect([
      suggest('hid', ['hide', 'user']),
      suggest('unix-sockets', ['ptrace', 'unixSockets']),
      suggest('zebra', ['hide', 'user']),
    ]).toEqual(['hide', 'unixSockets', undefined]);
  });
});

describe('files', () => {
  test('a file of more than 256 kB is refused', async () => {
    at.project(`# ${'x'.repeat(256 * 1024)}\n`);
    expect(await at.problem()).toEqual({ code: 'config.invalid', message: 'ags.yaml has more than 256 kB.' });
  });

  test('a link that leaves the project is refused, also through a directory; a link inside it is followed', async () => {
    const link = join(at.input.projectDir, 'ags.yaml');
    fs.writeFileSync(join(at.input.home, 'outside.yaml'), 'user: 1002\n');
    fs.symlinkSync('../outside.yaml', link);
    expect(await at.problem()).toEqual({
      code: 'config.invalid',
      message: 'ags.yaml is a link that leads out of the project.',
    });

    fs.rmSync(link);
    fs.symlinkSync('..', join(at.input.projectDir, 'up'));
    fs.symlinkSync('up/outside.yaml', link);
    expect((await at.problem()).message).toBe('ags.yaml is a link that leads out of the project.');

    fs.rmSync(link);
    fs.mkdirSync(join(at.input.projectDir, 'etc'));
    fs.writeFileSync(join(at.input.projectDir, 'etc/ags.yaml'), 'workspace: copy\n');
    fs.symlinkSync('etc/ags.yaml', link);
    expect((await at.load()).workspace).toBe('copy');
  });

  test('a fifo, a directory, a broken link and a wrong name are errors', async () => {
    const path = join(at.input.projectDir, 'ags.yaml');
    execFileSync('mkfifo', [path]);
    expect((await at.problem()).message).toBe('ags.yaml is not a regular file.');
    fs.rmSync(path);
    fs.mkdirSync(path);
    expect((await at.problem()).message).toBe('ags.yaml is not a regular file.');
    fs.rmdirSync(path);
    fs.symlinkSync('nowhere', path);
    expect((await at.problem()).message).toBe('ags.yaml is a broken symbolic link.');
    fs.rmSync(path);
    fs.writeFileSync(join(at.input.projectDir, 'ags.yml'), '');
    expect((await at.problem()).message).toBe('ags.yml is not read: its name must end in .yaml.');
  });

  test("the user's own file may be a link to any place", async () => {
    fs.mkdirSync(dirname(at.input.userConfigFile), { recursive: true });
    fs.writeFileSync(join(at.dir, 'dotfiles.yaml'), 'workspace: copy\n');
    fs.symlinkSync(join(at.dir, 'dotfiles.yaml'), at.input.userConfigFile);
    expect((await at.load()).workspace).toBe('copy');
  });
});

describe('paths that no sandbox may see', () => {
  test.each([
    '/',
    '~/',
    '/home',
    '/etc',
    '/proc/self',
    '/sys',
    '/dev/shm',
    '/run/docker.sock',
    '/var/run/x',
    '/tmp',
    '/opt/../proc',
    '~/project/src',
    '~/.local/state/ags/tasks',
    '~/.local/state',
    '~/.cache/ags',
    '~/.config',
  ])('mounts: %s', async (path) => {
    at.user(`mounts:\n  - path: ${path}\n`);
    expect(await at.problem()).toMatchObject({
      code: 'config.invalid',
      message: expect.stringContaining(' cannot be shown: ') as string,
    });
  });

  test('a link does not bypass the protection', async () => {
    const home = at.input.home;
    fs.mkdirSync(join(home, 'data'));
    fs.symlinkSync('../../home', join(home, 'data/home'));
    fs.symlinkSync('/run', join(home, 'data/run'));
    fs.symlinkSync('/usr/share', join(home, 'data/fine'));
    at.user('mounts: [{ path: ~/data/home }]\n');
    expect(await at.problem()).toEqual({
      code: 'config.invalid',
      message: `${at.input.userConfigFile}:1: ${home}/data/home leads to ${home}, which cannot be shown: the home as a whole is never shown`,
    });
    at.user('tools: { add: [data/fine, data/missing] }\n');
    expect((await at.load()).toolDirs.slice(TOOL_DIRS.length)).toEqual(['data/fine', 'data/missing']);
    expect((await at.problem({ mounts: [`${home}/data/run`] })).message).toBe(
      `--mount: ${home}/data/run leads to /run, which cannot be shown: sockets of this machine live there`,
    );
  });

  test('tool directories cannot contain the files of ags', async () => {
    at.user('tools:\n  add: [.local]\n');
    expect((await at.problem()).message).toBe(
      `${at.input.userConfigFile}:2:9: tools.add[0]: ~/.local cannot be shown: ags keeps its own files there`,
    );
  });

  test('a built-in tool directory that contains the state of ags is left out', async () => {
    const { toolDirs } = await loadConfig({ ...at.input, stateDir: join(at.input.home, '.cargo/bin/state') });
    expect(toolDirs).toEqual(TOOL_DIRS.filter((path) => path !== '.cargo/bin'));
  });

  test('removing a part of a tool directory is refused with the reason', async () => {
    at.user('tools:\n  remove: [.local/lib/secret]\n');
    expect((await at.problem()).message).toBe(
      `${at.input.userConfigFile}:2:12: tools.remove[0]: ~/.local/lib/secret lies in ~/.local/lib, which can only be removed as a whole`,
    );
  });
});
