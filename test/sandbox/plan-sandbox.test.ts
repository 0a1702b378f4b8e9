// test/sandbox/plan-sandbox.test.ts: `ags plan` shows exactly what `ags exec` starts. The two golden plans below are the security model to read.
import { perlProgram } from '../../src/lib/perl.ts';
// uses: sandbox
import { execFileSync, spawnSync, type SpawnSyncReturns } from 'node:child_process';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { commandLine, optionLines } from '../../src/cli/terminal/plan-text.ts';
import { shellQuote } from '../../src/cli/terminal/format.ts';
import { HOST_ROOT, hostPath, type Limits, type SandboxNetwork, type SandboxSpec } from '../../src/protocol/spec.ts';
import type { CgroupPlan } from '../../src/sandbox/watch/cgroup-plan.ts';
import { openCgroup } from '../../src/sandbox/watch/cgroup.ts';
import { prlimitArgv } from '../../src/sandbox/watch/limits.ts';
import { planLaunch, type Launch, type LaunchInput } from '../../src/sandbox/native/launch.ts';
import { accountFiles, NOTHING_MORE, planSandbox, type PlanInput } from '../../src/sandbox/spec/plan-sandbox.ts';
import { plannedCgroup } from '../../src/exec/plan-view.ts';
import { AGS, CALLERS, createMachine, HAS_SANDBOX, type Machine } from '../harness.ts';

const LAUNCHER = perlProgram('sandbox/perl/launcher.pl');
const GiB = 2 ** 30;
const limits: Limits = {
  processes: 2048,
  memoryBytes: 4 * GiB,
  openFiles: 65_536,
  fileBytes: 20 * GiB,
  diskBytes: 20 * GiB,
  tmpBytes: GiB,
  cpuSeconds: null,
  wallSeconds: 1800,
  cpus: null,
};
const RUN = '/home/dev/.local/state/ags/tasks/npm-test-4kd2/run';
const GIT = '/home/dev/app/.git';

function planInput(user: PlanInput['user']): PlanInput {
  return {
    machine: {
      system: [
        { path: '/usr', link: null },
        { path: '/bin', link: 'usr/bin' },
        { path: '/lib', link: 'usr/lib' },
      ],
      etc: [],
      toolDirs: ['/home/dev/.nvm'],
      mountPoints: ['/', '/srv/models/large'],
      leftOut: [],
    },
    user,
    home: '/home/dev',
    homeDir: `${RUN}/home`,
    homeStays: false,
    root: HOST_ROOT,
    imageEnv: {},
    etc: { kind: 'copy', directory: '/home/dev/.cache/ags/etc-4kd2xz' },
    project: '/home/dev/app',
    cwd: '/home/dev/app/src',
    workspace: {
      kind: 'overlay',
      layers: [{ path: hostPath('/home/dev/app'), identity: '64768,131' }],
      hidden: ['.env', 'certs/dev.pem'],
      upper: hostPath(`${RUN}/upper`),
      work: hostPath(`${RUN}/work`),
    },
    git: {
      mounts: [
        { from: `${RUN}/git`, to: GIT, writable: true, why: "the task's own git directory" },
        { from: `${GIT}/objects`, to: '/run/ags/objects/0', writable: false, why: 'objects of your repository' },
      ],
    },
    extraMounts: ['/srv/models'],
    hostEnv: {
      PATH: '/home/dev/.nvm/bin:/usr/bin:/home/dev/secret/bin:relative',
      LANG: 'C.UTF-8',
      NVM_DIR: '/home/dev/.nvm',
      JAVA_HOME: '/elsewhere/jdk',
      MYAPP_MODE: 'test',
      AWS_SECRET_ACCESS_KEY: 'secret',
      SSH_AUTH_SOCK: '/tmp/agent',
      LD_PRELOAD: '/x.so',
    },
    envPass: ['LANG', 'MYAPP_*'],
    pathEnv: ['NVM_DIR', 'JAVA_HOME'],
    networkEnv: { https_proxy: 'http://127.0.0.1:3128' },
    files: [],
    envSet: { LOG_LEVEL: 'debug' },
    limits,
    kernel: { ptrace: false, unixSockets: true },
    network: { kind: 'loopback' },
    runtime: null,
    taskName: 'npm-test-4kd2',
    more: NOTHING_MORE,
  };
}

function launchFor(
  callerIsRoot: boolean,
  changes: { readonly network?: SandboxNetwork; readonly input?: Partial<LaunchInput> } = {},
): { spec: SandboxSpec; launch: Launch; user: PlanInput['user'] } {
  const uid = callerIsRoot ? 1001 : 1000;
  const user = { uid, gid: uid, name: callerIsRoot ? 'agent' : 'dev', shell: '/bin/bash' };
  const spec = planSandbox({ ...planInput(user), network: changes.network ?? { kind: 'loopback' } });
  const host = {
    memoryBytes: 16 * GiB,
    kernel: '6.1.0',
    procLimits: '',
    cgroup: { kind: 'none', why: 'no cgroup' },
    prlimit: '/usr/bin/prlimit',
  } as const;
  const launch = planLaunch({
    spec,
    command: ['npm', 'test'],
    limitArgv: prlimitArgv(limits, host),
    runDir: RUN,
    callerIsRoot,
    owner: { uid: 0, gid: 0 },
    bwrap: '/usr/bin/bwrap',
    setsid: '/usr/bin/setsid',
    arch: 'x64',
    overlays: true,
    namespaces: true,
    stage: callerIsRoot ? '/mnt' : '',
    cgroupFiles: callerIsRoot ? ['/sys/fs/cgroup/ags-npm-test-4kd2/cgroup.procs'] : [],
    prefix: [],
    terminal: false,
    stdinIsTerminal: false,
    ...changes.input,
  });
  return { spec, launch, user };
}

/** The whole plan as lines: its parts, its command, and every argument of bwrap. */
function golden(callerIsRoot: boolean): string {
  const { spec, launch, user } = launchFor(callerIsRoot);
  const argv = launch.argv.map((word) => (word === LAUNCHER ? 'LAUNCHER' : shellQuote(word)));
  return [
    `network ${spec.network.kind}, hostname ${spec.hostname}, in ${spec.workdir}`,
    '',
    argv.join(' '),
    '',
    ...optionLines(launch.bwrapArgs),
    '',
    ...launch.staged.map(({ from, at }) => `staged ${at} ${from}`),
    ...launch.files.map(({ path, content }) => `made ${path} ${JSON.stringify(content)}`),
    ...Object.entries(accountFiles(user, '/home/dev', 'nameserver 127.0.0.1\n')).map(
      ([name, content]) => `made /etc/${name} ${JSON.stringify(content)}`,
    ),
  ].join('\n');
}

describe('the plan of a sandbox, in full', () => {
  test('for an ordinary user', () => {
    expect(golden(false)).toMatchInlineSnapshot(`
      "network loopback, hostname sandbox, in /home/dev/app/src

      unshare --user --map-root-user --mount --propagation private -- perl -e LAUNCHER -- 165,272,157,292,46,126,119,117,302 '' /home/dev/.local/state/ags/tasks/npm-test-4kd2/run '' lowerdir=hide:%s,upperdir=upper,workdir=work 1 /home/dev/app 64768,131 0 2 /home/dev/.nvm stage/0 must /home/dev/app/.git/objects stage/1 may '' 0 /usr/bin/bwrap --args 3 -- /bin/sh -c 'read -r go <&6 && exec "$@" 6<&-' ags /usr/bin/prlimit --core=1 --nofile=65536 --fsize=21474836480 --nproc=2048 --data=8589934592 -- npm test

      --unshare-user
      --disable-userns
      --unshare-pid
      --unshare-ipc
      --unshare-uts
      --unshare-cgroup
      --unshare-net
      --uid 1000
      --gid 1000
      --hostname sandbox
      --cap-drop ALL
      --die-with-parent
      --new-session
      --clearenv
      --setenv LANG C.UTF-8
      --setenv NVM_DIR /home/dev/.nvm
      --setenv MYAPP_MODE test
      --setenv PATH /home/dev/.nvm/bin:/usr/bin
      --setenv HOME /home/dev
      --setenv USER dev
      --setenv LOGNAME dev
      --setenv SHELL /bin/bash
      --setenv TMPDIR /tmp
      --setenv https_proxy http://127.0.0.1:3128
      --setenv LOG_LEVEL debug
      --setenv AGS_SANDBOX 1
      --setenv AGS_TASK npm-test-4kd2
      --ro-bind /usr /usr
      --symlink usr/bin /bin
      --symlink usr/lib /lib
      --ro-bind /home/dev/.cache/ags/etc-4kd2xz /etc
      --proc /proc
      --perms 0555
      --tmpfs /proc/1
      --remount-ro /proc/1
      --dev /dev
      --size 268435456
      --perms 1777
      --tmpfs /dev/shm
      --size 1073741824
      --perms 1777
      --tmpfs /tmp
      --perms 0755
      --dir /run
      --perms 0755
      --dir /var
      --symlink ../tmp /var/tmp
      --bind /home/dev/.local/state/ags/tasks/npm-test-4kd2/run/home /home/dev
      --ro-bind /home/dev/.local/state/ags/tasks/npm-test-4kd2/run/stage/0 /home/dev/.nvm
      --ro-bind /srv/models /srv/models
      --bind /home/dev/.local/state/ags/tasks/npm-test-4kd2/run/merged /home/dev/app
      --bind /home/dev/.local/state/ags/tasks/npm-test-4kd2/run/git /home/dev/app/.git
      --ro-bind /home/dev/.local/state/ags/tasks/npm-test-4kd2/run/stage/1 /run/ags/objects/0
      --remount-ro /dev
      --remount-ro /
      --chdir /home/dev/app/src
      --seccomp 4
      --json-status-fd 5

      staged stage/0 /home/dev/.nvm
      staged stage/1 /home/dev/app/.git/objects
      made /etc/passwd "root:x:0:0:root:/nonexistent:/usr/sbin/nologin\\ndev:x:1000:1000::/home/dev:/bin/bash\\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\\n"
      made /etc/group "root:x:0:\\ndev:x:1000:\\nnogroup:x:65534:\\n"
      made /etc/hosts "127.0.0.1 localhost sandbox\\n::1 localhost\\n"
      made /etc/hostname "sandbox\\n"
      made /etc/resolv.conf "nameserver 127.0.0.1\\n""
    `);
  });

  test('for root, with the change to another user before bwrap starts', () => {
    expect(golden(true)).toMatchInlineSnapshot(`
      "network loopback, hostname sandbox, in /home/dev/app/src

      perl -e LAUNCHER -- 165,272,157,292,46,126,119,117,302 1001,1001,0,0 /home/dev/.local/state/ags/tasks/npm-test-4kd2/run /mnt lowerdir=hide:%s,upperdir=upper,workdir=work 1 /home/dev/app 64768,131 1 /sys/fs/cgroup/ags-npm-test-4kd2/cgroup.procs 4 /home/dev/.cache/ags/etc-4kd2xz stage/0 map,no /home/dev/.nvm stage/1 map,must /srv/models stage/2 map,no /home/dev/app/.git/objects stage/3 map,may '' 0 /usr/bin/bwrap --args 3 -- /bin/sh -c 'read -r go <&6 && exec "$@" 6<&-' ags /usr/bin/prlimit --core=1 --nofile=65536 --fsize=21474836480 --nproc=2048 --data=8589934592 -- npm test

      --unshare-user
      --disable-userns
      --unshare-pid
      --unshare-ipc
      --unshare-uts
      --unshare-cgroup
      --unshare-net
      --uid 1001
      --gid 1001
      --hostname sandbox
      --cap-drop ALL
      --die-with-parent
      --new-session
      --clearenv
      --setenv LANG C.UTF-8
      --setenv NVM_DIR /home/dev/.nvm
      --setenv MYAPP_MODE test
      --setenv PATH /home/dev/.nvm/bin:/usr/bin
      --setenv HOME /home/dev
      --setenv USER agent
      --setenv LOGNAME agent
      --setenv SHELL /bin/bash
      --setenv TMPDIR /tmp
      --setenv https_proxy http://127.0.0.1:3128
      --setenv LOG_LEVEL debug
      --setenv AGS_SANDBOX 1
      --setenv AGS_TASK npm-test-4kd2
      --ro-bind /usr /usr
      --symlink usr/bin /bin
      --symlink usr/lib /lib
      --ro-bind /mnt/stage/0 /etc
      --proc /proc
      --perms 0555
      --tmpfs /proc/1
      --remount-ro /proc/1
      --dev /dev
      --size 268435456
      --perms 1777
      --tmpfs /dev/shm
      --size 1073741824
      --perms 1777
      --tmpfs /tmp
      --perms 0755
      --dir /run
      --perms 0755
      --dir /var
      --symlink ../tmp /var/tmp
      --bind /mnt/home /home/dev
      --ro-bind /mnt/stage/1 /home/dev/.nvm
      --ro-bind /mnt/stage/2 /srv/models
      --bind /mnt/merged /home/dev/app
      --bind /mnt/git /home/dev/app/.git
      --ro-bind /mnt/stage/3 /run/ags/objects/0
      --remount-ro /dev
      --remount-ro /
      --chdir /home/dev/app/src
      --seccomp 4
      --json-status-fd 5

      staged stage/0 /home/dev/.cache/ags/etc-4kd2xz
      staged stage/1 /home/dev/.nvm
      staged stage/2 /srv/models
      staged stage/3 /home/dev/app/.git/objects
      made /etc/passwd "root:x:0:0:root:/nonexistent:/usr/sbin/nologin\\nagent:x:1001:1001::/home/dev:/bin/bash\\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\\n"
      made /etc/group "root:x:0:\\nagent:x:1001:\\nnogroup:x:65534:\\n"
      made /etc/hosts "127.0.0.1 localhost sandbox\\n::1 localhost\\n"
      made /etc/hostname "sandbox\\n"
      made /etc/resolv.conf "nameserver 127.0.0.1\\n""
    `);
  });

  describe('with a gateway', () => {
    const network: SandboxNetwork = {
      kind: 'gateway',
      listeners: [
        { name: 'proxy', protocol: 'tcp', address: '127.0.0.1', port: 3128 },
        { name: 'names', protocol: 'udp', address: '127.0.0.1', port: 53 },
      ],
      reach: false,
    };
    const words = (launch: Launch): string => {
      const at = launch.argv.indexOf('/usr/bin/bwrap');
      return launch.argv.slice(at - 5, at).join(' ');
    };

    test('the launcher makes the network and its listeners, and bwrap makes no network', () => {
      for (const root of [false, true]) {
        const { launch } = launchFor(root, { network });
        expect(words(launch)).toContain(' 7,0 2 tcp,127.0.0.1,3128 udp,127.0.0.1,53');
        expect(launch.bwrapArgs).toEqual(launchFor(root).launch.bwrapArgs.filter((word) => word !== '--unshare-net'));
      }
    });

    test('the channel follows the last descriptor, and stays open where ports are published', () => {
      const reach = { ...network, reach: true };
      const input = { terminal: true, stdinIsTerminal: false };
      expect(words(launchFor(false, { network: reach, input }).launch)).toContain(' 8,1 2 tcp,');
    });

    test('it is refused where the launcher has no namespace, and where a listener could be taken over', () => {
      const input = { overlays: false, namespaces: false };
      const copied = launchFor(false).spec.mounts.filter(({ kind }) => kind !== 'workspace');
      const spec = { ...launchFor(false, { network }).spec, mounts: copied };
      expect(() => launchFor(false, { input: { ...input, spec } })).toThrow(
        expect.objectContaining({
          code: 'backend.unavailable',
          message: 'The sandbox cannot have a gateway: on this system bwrap alone may make namespaces.',
          hint: 'Start it without a network: --network off',
        }),
      );
      const high = [{ name: 'high', protocol: 'udp', address: '127.0.0.1', port: 5353 }] as const;
      expect(() => launchFor(true, { network: { ...network, listeners: high } })).toThrow('could be taken over');
    });
  });

  test('shows every argument of bwrap once, one option per line, even if a value looks like an option', () => {
    const args = [
      '--unshare-user',
      '--setenv',
      'A',
      '--bind',
      '--ro-bind',
      '/a b',
      "/it's",
      '--size',
      '1',
      '--perms',
      '0755',
      '--tmpfs',
      '/tmp',
      '--chdir',
      '/x',
    ];
    expect(optionLines(args)).toEqual([
      '--unshare-user',
      '--setenv A --bind',
      "--ro-bind '/a b' '/it'\\''s'",
      '--size 1',
      '--perms 0755',
      '--tmpfs /tmp',
      '--chdir /x',
    ]);
  });

  test('is quoted so that a shell reads the same words, and a terminal interprets none of them', () => {
    const words = [
      'plain',
      '',
      "it's",
      'a b',
      '$HOME `x` "y" \\',
      'line\nbreak',
      'tab\there',
      '\u001b[31mred',
      'b\u202Eidi',
      'ü–日本',
      '-n',
      '*',
      '~',
      LAUNCHER,
    ];
    const line = commandLine(words);
    const read = spawnSync('bash', ['-c', `printf '%s\\0' ${line}`], { encoding: 'utf8' });
    expect(read.stdout.split('\0').slice(0, -1)).toEqual(words);
    expect(line.replaceAll(LAUNCHER.replaceAll("'", String.raw`'\''`), '')).not.toMatch(/[\p{Cc}\u202E]/u);
  });
});

test.each<[string, (dir: string) => CgroupPlan]>([
  ['no cgroup', () => ({ kind: 'none', why: 'there is none' })],
  [
    'a systemd scope',
    () => ({
      kind: 'scope',
      systemdRun: '/usr/bin/systemd-run',
      slice: '/nowhere',
      manager: '/nowhere',
      runtimeDir: '/run/user/1000',
      holds: ['memory', 'pids'],
    }),
  ],
  ['cgroup v2', (dir) => ({ kind: 'v2', parent: dir, holds: ['memory', 'pids'], enable: [], processesAtMost: null })],
  [
    'cgroup v1',
    (dir) => ({
      kind: 'v1',
      parents: { memory: join(dir, 'memory'), pids: join(dir, 'pids') },
      holds: ['memory', 'pids'],
    }),
  ],
])('with %s, the planned cgroup is the opened one, except for its name', (_, planFor) => {
  const dir = mkdtempSync(join(tmpdir(), 'ags-plan-'));
  for (const name of ['memory', 'pids']) mkdirSync(join(dir, name));
  try {
    const plan = planFor(dir);
    const opened = openCgroup(plan, 'x', limits);
    const rename = (words: readonly string[]): string[] => words.map((word) => word.replace(opened.name, 'ags-<new>'));
    expect(plannedCgroup(plan, limits)).toEqual({
      files: rename(opened.enterFiles),
      prefix: rename(opened.prefix),
      env: opened.env,
    });
  } finally {
    rmSync(dir, { recursive: true });
  }
});

describe.runIf(HAS_SANDBOX).each(CALLERS)('ags plan as %s', (caller) => {
  test('prints the arguments that ags exec passes to bwrap, modulo the name of the task', async () => {
    using machine = createMachine(caller, { files: { 'a.txt': 'a\n', 'keys/dev.pem': 'k\n', 'src/b.txt': 'b\n' } });
    machine.write('.env', 'TOKEN=1\n');
    const command = ['-e', 'MODE=a b', '--limit', 'memory=2g', '--', 'sh', '-c', 'exit 3'];
    const recorder = createRecorder(machine);
    expect(recorder.ags(['exec', '--name', 'recorded', ...command])).toMatchObject({ status: 3, stderr: '' });
    const real = recorder.read('recorded');
    const { stdout, stderr } = recorder.ags(['plan', '--json', ...command]);
    expect(stderr).toBe('');
    const plan = JSON.parse(stdout) as { argv: string[]; bwrapArgs: string[] };
    expect(plan.bwrapArgs).toEqual(real.bwrapArgs);
    expect(plan.argv.slice(-real.argv.length)).toEqual(real.argv);
    expect(plan.argv.at(-real.argv.length - 1)).toBe('/usr/bin/bwrap');
    expect(real.argv).toEqual(expect.arrayContaining(['sh', '-c', 'exit 3']));
  });

  test('makes no task and writes nothing but caches', async () => {
    using machine = createMachine(caller);
    const before = tree(machine.project);
    expect(await machine.ags(['plan', '--', 'rm', '-rf', '.'])).toMatchObject({ code: 0, stderr: '' });
    expect(tree(machine.project)).toEqual(before);
    expect(existsSync(join(machine.stateDir, 'tasks'))).toBe(false);
    expect(
      readdirSync(join(machine.home, '.cache/ags')).filter((name) => !/\.json$|^etc-|^code-.*\.bin$/.test(name)),
    ).toEqual([]);
  });

  test('shows hidden files, visible secrets and who enforces each limit, but no value of a passed variable', async () => {
    using machine = createMachine(caller, { files: { 'a.txt': 'a\n', 'keys/dev.pem': 'k\n' } });
    machine.write('.env', 'TOKEN=1\n');
    const { stdout } = await machine.ags(
      ['plan', '--verbose', '-e', 'MY_TOKEN', '-e', 'MODE=test', '--limit', 'time=90s', '--', 'npm', 'test'],
      { env: { MY_TOKEN: 'very-secret', OTHER: 'not passed' } },
    );
    const section = (title: string): string[] =>
      stdout
        .split('\n\n')
        .find((part) => part.startsWith(title))
        ?.split('\n')
        .slice(1) ?? [];
    expect(section('Hidden')).toEqual(['  .env']);
    expect(section('Visible although')).toEqual(['  keys/dev.pem']);
    expect(section('Environment').map((line) => line.trim().split(/ +/))).toEqual(
      expect.arrayContaining([
        ['MY_TOKEN', '(set)'],
        ['MODE', 'test'],
        ['AGS_TASK', '<new>'],
        ['LANG', 'C.UTF-8'],
      ]),
    );
    expect(section('Limits').at(-2)).toBe('  time       watched             90 s from start to end');
    expect(
      section('Mounts')
        .filter((line) => line.startsWith('  rw'))
        .map((line) => line.trim().split(/\s+/)[1]),
    ).toEqual(['/proc', '/dev/shm', '/tmp', machine.home, machine.project, `${machine.project}/.git`]);
    expect(stdout.split('\n')[0]).toMatch(/^native · overlay · /);
    expect(stdout).not.toContain('very-secret');
    expect(stdout).not.toContain('not passed');
    expect(
      (await machine.ags(['plan', '--json', '-e', 'MY_TOKEN'], { env: { MY_TOKEN: 'very-secret' } })).stdout,
    ).toContain('"MY_TOKEN": "very-secret"');
  });

  test('shows names that would trick a terminal as text', async () => {
    using machine = createMachine(caller);
    machine.write('x\u001b]0;owned\u0007.pem', 'k\n');
    for (const more of [[], ['--verbose']]) {
      const { stdout } = await machine.ags(['plan', ...more, '--', 'echo', '\u001b[2J']);
      expect(stdout).toContain(String.raw`x\x1b]0;owned\x07.pem`);
      expect(stdout).toContain(String.raw`echo $'\x1b[2J'`);
      expect(stdout).not.toContain('\u001b');
    }
  });

  test('fits a screen with everything configured, and names whatever is not the default', async () => {
    using machine = createMachine(caller, { files: { 'a.txt': 'a\n', 'keys/dev.pem': 'k\n' } });
    expect(linesOf(await machine.ags(['plan'])).length).toBeLessThan(24);
    const many = Array.from({ length: 30 }, (_, i) => i);
    for (const i of many) machine.write(`.env.${i}`, 'TOKEN=1\n');
    for (const i of many) machine.write(`../../data/directory-${i}/file`, '');
    machine.write(
      '../../.config/ags/config.yaml',
      JSON.stringify({
        home: 'project',
        kernel: { ptrace: true },
        mounts: many.map((i) => ({ path: `~/data/directory-${i}` })),
        secrets: many.map((i) => ({ name: `s${i}`, env: `S${i}`, from: { env: `S${i}` }, host: `s${i}.test` })),
        network: { allow: many.map((i) => `host${i}.test`), tcp: ['db=localhost:5432'], publish: ['8080:3000'] },
        services: { store: 'postgres', cache: 'redis' },
        hooks: { use: ['log', 'no-secrets'] },
      }),
    );
    const flags = ['-e', 'MODE=test', '-e', 'MY_TOKEN', '--limit', 'memory=2g', '--deny', 'evil.test'];
    const said = linesOf(
      await machine.ags(['plan', ...flags, '--', 'npm', 'test'], {
        env: { MY_TOKEN: 'very-secret', AGS_ALLOW: 'a.test' },
      }),
    );
    expect(said.length).toBeLessThanOrEqual(40);
    expect(said.filter((line) => line.length > 80)).toEqual([]);
    const text = said.join('\n').replaceAll(/\s+/g, ' ');
    for (const words of [
      'Home kept for the next task: ',
      'mounts ~/data/directory-0, ',
      'Hidden .env.0, ',
      'Not hidden because git tracks them: keys/dev.pem',
      'rules ',
      ', and 28 more',
      'tcp db=localhost:5432',
      'publish 8080:3000',
      'sends s0 (S0 of your environment) to s0.test, ',
      'Variables MY_TOKEN (passed on), MODE (set)',
      'memory 2g',
      'ptrace allowed',
      'Hooks log, no-secrets',
      'mounts (30)',
      'secrets (30)',
      '; network (AGS_ALLOW); ',
      'ags plan --verbose',
    ])
      expect(text).toContain(words);
    expect(text).not.toContain('very-secret');
  });

  test('names the limit that is set, also where this user may not have as much as the configuration allows', () => {
    using machine = createMachine(caller);
    const plan = (...flags: readonly string[]): string =>
      execFileSync('prlimit', ['--nofile=20000:20000', '--', process.execPath, AGS, 'plan', ...flags], {
        ...(machine.uid === process.getuid?.() ? {} : { uid: machine.uid, gid: machine.uid }),
        cwd: machine.project,
        env: machine.env,
        encoding: 'utf8',
      });
    expect(plan()).toContain('openFiles 20000');
    expect(plan('--verbose')).toMatch(/openFiles +held by the kernel +20000/);
  });

  test('fails as ags exec would', async () => {
    using machine = createMachine(caller);
    expect(await machine.ags(['plan', '--limit', 'memory=lots', '--', 'true'])).toMatchObject({ code: 2, stdout: '' });
    expect(await machine.ags(['plan', '--project', '/nowhere'])).toEqual({
      code: 2,
      signal: null,
      stdout: '',
      stderr: expect.stringContaining('/nowhere is not a directory.'),
    });
  });
});

function linesOf({ stdout }: { readonly stdout: string }): string[] {
  return stdout.trimEnd().split('\n');
}

function tree(dir: string): string[] {
  return execFileSync('find', ['.', '-printf', '%p %m %T@ %s\n'], { cwd: dir, encoding: 'utf8' })
    .split('\n')
    .toSorted();
}

/** Runs ags with a bwrap that records its arguments before it executes the real one. */
function createRecorder(machine: Machine): {
  ags(args: readonly string[]): SpawnSyncReturns<string>;
  read(name: string): { argv: string[]; bwrapArgs: string[] };
} {
  const records = join(machine.root, 'records');
  mkdirSync(records);
  chmodSync(records, 0o777);
  copyFileSync('/usr/bin/bwrap', join(machine.root, 'bwrap'));
  const recorder = join(machine.root, 'recorder');
  writeFileSync(
    recorder,
    `#!/bin/sh
[ "\${AGS_RUN:-}" ] || exec '${machine.root}/bwrap' "$@"
record='${records}/'"$AGS_RUN.$$"
printf '%s\\0' "$@" > "$record.argv"
cat <&3 > "$record.args"
exec '${machine.root}/bwrap' "$@" 3< "$record.args"
`,
    { mode: 0o755 },
  );
  const asRoot = process.getuid?.() === 0;
  // The mount is private to this test.
  const namespace = asRoot
    ? ['unshare', '--mount', '--propagation', 'private']
    : ['unshare', '--user', '--map-current-user', '--keep-caps', '--mount'];
  const become = asRoot
    ? ['setpriv', `--reuid=${machine.uid}`, `--regid=${machine.uid}`, '--clear-groups']
    : ['setpriv', '--ambient-caps=-all', '--inh-caps=-all'];
  return {
    ags(args) {
      const [file = '', ...rest] = [
        ...namespace,
        'sh',
        '-c',
        'mount --bind "$1" /usr/bin/bwrap && shift && exec "$@"',
        'sh',
        recorder,
        ...become,
        process.execPath,
        AGS,
        ...args,
      ];
      return spawnSync(file, rest, { cwd: machine.project, env: machine.env, encoding: 'utf8', input: '' });
    },
    read(name) {
      const record =
        readdirSync(records)
          .find((file) => file.startsWith(`${name}-`) && file.endsWith('.argv'))
          ?.replace('.argv', '') ?? '';
      const [id = ''] = record.split('.');
      const words = (kind: string): string[] =>
        readFileSync(join(records, `${record}.${kind}`), 'utf8')
          .split('\0')
          .slice(0, -1)
          .map((word) => word.replaceAll(id, '<new>'));
      return { argv: words('argv'), bwrapArgs: words('args') };
    },
  };
}
