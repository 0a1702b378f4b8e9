// The probe behind every start: it passes on this machine, leaves nothing behind, and refuses a bubblewrap that silently drops a
// protection. The replacements for bubblewrap are real programs, started by the real launcher.
// needs: sandbox
import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { release, tmpdir, totalmem } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { judge, type Expected } from '../../src/sandbox/checks/evidence.ts';
import { explainFailure, type Problem } from '../../src/sandbox/checks/failure.ts';
import { readKernelFacts } from '../../src/sandbox/checks/kernel-facts.ts';
import { explainOverlay } from '../../src/sandbox/checks/overlay-reason.ts';
import { inspectHost, type NativeHost } from '../../src/sandbox/checks/host.ts';
import { installCommand } from '../../src/sandbox/programs.ts';
import { trySandbox, type Trial } from '../../src/run/probe.ts';
import { workspaceKind } from '../../src/run/readiness.ts';
import type { HostContext } from '../../src/run/host-context.ts';
import { type Caller, CALLERS, createMachine, giveTo, type Machine, ONE } from '../harness.ts';

const DIST = fileURLToPath(new URL('../../dist', import.meta.url));
const BWRAP = '/usr/bin/bwrap';

const DRIVER = `
import { release, totalmem } from 'node:os';
const [dist, home, bwrap] = process.argv.slice(2);
const { inspectHost } = await import(dist + '/sandbox/checks/host.js');
const { trySandbox } = await import(dist + '/run/probe.js');
const uid = process.getuid();
const context = { cwd: '/', home, env: { LANG: 'de_DE.UTF-8' }, uid, gid: process.getgid(), userName: 'dev', shell: '/bin/sh', stateDir: home + '/.local/state/ags', cacheDir: home + '/.cache/ags', configFile: '', memoryBytes: totalmem(), kernel: release(), platform: 'linux', nodeArch: process.arch, pid: process.pid, now: () => new Date() };
const host = await inspectHost({ ...context, runtimeDir: '/nonexistent' });
process.stdout.write(JSON.stringify(await trySandbox(context, { ...host, programs: { ...host.programs, bwrap } })));
`;

/** Runs the probe in a process of the machine's caller, with this program as bubblewrap. */
function probe(machine: Machine, bwrap = BWRAP): Trial {
  const driver = join(machine.root, 'driver.mjs');
  writeFileSync(driver, DRIVER);
  const identity = process.getuid?.() === 0 ? { uid: machine.uid, gid: machine.uid } : {};
  const { stdout, stderr } = spawnSync(process.execPath, [driver, DIST, machine.home, bwrap], {
    ...identity,
    env: machine.env,
    encoding: 'utf8',
  });
  if (stdout === '') throw new Error(stderr);
  return JSON.parse(stdout) as Trial;
}

function program(machine: Machine, script: string): string {
  const dir = mkdtempSync(join(machine.root, 'program-'));
  // The sandbox's user runs the program, and altered() writes beside it.
  chmodSync(dir, 0o1777);
  const path = join(dir, 'bwrap');
  writeFileSync(path, `#!/bin/sh\n${script}\n`, { mode: 0o755 });
  return path;
}

/** A bubblewrap whose arguments, read from a descriptor, pass through sed first. */
function altered(machine: Machine, sed: string): string {
  return program(
    machine,
    `file=$(mktemp "$(dirname "$0")/args.XXXXXX") && sed -z '${sed}' <&3 > "$file" && exec 3< "$file" && rm "$file" && exec ${BWRAP} "$@"`,
  );
}

const dropsOption = (option: string): string => `/^${option}$/d`;
const dropsPair = (option: string): string => `/^${option}$/{N;d}`;

function contextOf(machine: Machine): HostContext {
  return {
    cwd: machine.project,
    home: machine.home,
    env: {},
    uid: process.getuid?.() ?? 0,
    gid: process.getgid?.() ?? 0,
    userName: 'dev',
    shell: '/bin/sh',
    stateDir: machine.stateDir,
    cacheDir: join(machine.home, '.cache/ags'),
    self: [],
    dataDir: join(machine.home, '.local/share/ags'),
    configFile: '',
    memoryBytes: totalmem(),
    kernel: release(),
    platform: 'linux',
    nodeArch: process.arch,
    pid: process.pid,
    now: () => new Date(),
  };
}
function withBwrap(host: NativeHost, bwrap: string): NativeHost {
  return { ...host, programs: { ...host.programs, bwrap } };
}

describe.each(CALLERS)('for %s', (caller: Caller) => {
  test('a complete sandbox works here, and the probe leaves nothing behind', () => {
    using machine = createMachine(caller, { git: false });
    const { startMs, ...trial } = probe(machine);
    expect(trial).toEqual({ problem: null, overlay: { works: true, why: '' }, namespaces: true });
    expect(startMs).toBeGreaterThan(0);
    expect(readdirSync(machine.stateDir)).toEqual(['whiteout']);
  });

  test('a failed probe leaves nothing behind, and files of a killed one are removed', () => {
    using machine = createMachine(caller, { git: false });
    const old = join(machine.stateDir, 'probe-old');
    mkdirSync(join(old, 'project'), { recursive: true });
    giveTo(machine.home, machine.uid);
    utimesSync(old, 0, 0);
    expect(probe(machine, program(machine, 'exit 1')).problem).not.toBeNull();
    expect(readdirSync(machine.stateDir)).toEqual(['whiteout']);
  });

  const mutations: readonly (readonly [name: string, sed: string, lacking: string])[] = [
    ['the filter for system calls', dropsPair('--seccomp'), 'its system calls were not filtered'],
    [
      'the limit of user namespaces',
      dropsOption('--disable-userns'),
      'user namespaces were forbidden by its system call filter alone',
    ],
    ['its own network', dropsOption('--unshare-net'), 'it shared the net namespace of this machine'],
    ['its own processes', dropsOption('--unshare-pid'), 'it shared the pid namespace of this machine'],
    ['its own shared memory', dropsOption('--unshare-ipc'), 'it shared the ipc namespace of this machine'],
    ['its own control groups', dropsOption('--unshare-cgroup'), 'it shared the cgroup namespace of this machine'],
    ['its own session', dropsOption('--new-session'), 'it belonged to the session of its caller'],
    ['its user', '/^--uid$/{n;s/.*/0/}', 'it ran as uid 0'],
    ['the read-only root', dropsPair('--remount-ro'), 'it could write in /, /dev; it made files in /, /dev/'],
    [
      'the private copy of the project',
      caller === 'root' ? '/^--bind$/{N;s|/merged$|/stage/l0|}' : '/^--bind$/{N;s|/tasks/[^/]*/run/merged$|/project|}',
      "it changed the project's own files",
    ],
    ['read-only system directories', 's/^--ro-bind$/--bind/', 'it could write in /usr'],
    [
      'the hiding of other files',
      '/^--chdir$/{N;s|--chdir.\\(.*\\)/project$|--dir\\x00\\1/outsider\\x00--chdir\\x00\\1/project|}',
      'it saw files that it must not see',
    ],
  ];

  test.each(mutations)('a bubblewrap that drops %s is refused', (_name, sed, lacking) => {
    using machine = createMachine(caller, { git: false });
    const { problem, overlay } = probe(machine, altered(machine, sed));
    expect(problem?.message ?? 'no problem').toContain(lacking);
    expect({ cause: problem?.cause, works: overlay.works }).toEqual({ cause: 'unprotected', works: false });
  });

  test('a sandbox without limits is refused', () => {
    using machine = createMachine(caller, { git: false });
    const prlimit = program(machine, 'while [ "$1" != -- ]; do shift; done; shift; exec "$@"');
    const { problem } = probe(
      machine,
      altered(machine, `s|^--chdir$|--ro-bind\\x00${prlimit}\\x00/usr/bin/prlimit\\x00--chdir|`),
    );
    expect(problem?.message).toBe(
      'A test sandbox started, but not with every protection in force: its limits were not set.',
    );
  });

  test('the replacement that drops nothing is accepted', () => {
    using machine = createMachine(caller, { git: false });
    expect(probe(machine, altered(machine, '')).problem).toBeNull();
  });

  test('a bubblewrap that keeps capabilities is refused; that of root has none', () => {
    using machine = createMachine(caller, { git: false });
    const problem = probe(machine, altered(machine, dropsPair('--cap-drop'))).problem?.message ?? null;
    expect(problem).toEqual(
      caller === 'root'
        ? null
        : 'A test sandbox started, but not with every protection in force: it kept capabilities.',
    );
  });

  test('a program that runs the command without any sandbox is refused', () => {
    using machine = createMachine(caller, { git: false });
    const fake = program(
      machine,
      `echo "{ \\"child-pid\\": $$ }" >&5; while [ "$1" != -- ]; do shift; done; shift; "$@"; echo '{ "exit-code": 0 }' >&5`,
    );
    const { problem } = probe(machine, fake);
    expect(problem?.message).toContain('its system calls were not filtered');
    expect(problem?.cause).toBe('unprotected');
  });

  test('if overlays fail but copies work, the probe says so and why', () => {
    using machine = createMachine(caller, { git: false });
    // Makes the merged workspace read-only; doctor.test.ts tests real failures of the kernel.
    const fake = altered(machine, '/^--bind$/{N;/\\/merged$/s/--bind/--ro-bind/}');
    const { problem, overlay } = probe(machine, fake);
    expect(problem).toBeNull();
    expect(overlay.works).toBe(false);
    expect(overlay.why).toContain(`an overlay does not work here (the state directory ${machine.stateDir} is on`);
    expect(overlay.why).toContain('Read-only file system');
  });

  const texts: readonly (readonly [said: string, problem: Problem])[] = [
    [
      "bwrap: Can't mount proc on /newroot/proc: Operation not permitted",
      {
        cause: 'proc',
        message: 'This container hides parts of /proc, so a sandbox inside it cannot have a /proc of its own.',
        hint: 'Start the container with: --security-opt systempaths=unconfined (Podman: --security-opt unmask=ALL)',
      },
    ],
    [
      'bwrap: pivot_root: Operation not permitted',
      {
        cause: 'pivot-root',
        message:
          'The system call filter of this container forbids pivot_root, without which a sandbox cannot leave the old root.',
        hint: 'Start the container with: --security-opt seccomp=unconfined --security-opt systempaths=unconfined',
      },
    ],
    [
      'bwrap: prctl(PR_SET_SECCOMP): Invalid argument',
      {
        cause: 'seccomp',
        message: 'This kernel cannot filter system calls (seccomp), which every sandbox needs.',
        hint: 'Boot a kernel with CONFIG_SECCOMP_FILTER=y; see: cat /proc/sys/kernel/seccomp/actions_avail',
      },
    ],
    [
      "bwrap: Can't mkdir parents for /home/you/x/y: Permission denied",
      {
        cause: 'parents',
        message: 'You cannot read a directory above /home/you/x/y, which bubblewrap needs.',
        hint: 'See which: namei -l /home/you/x',
      },
    ],
    [
      'bwrap: Unexpected capabilities but not setuid, old file caps config?',
      {
        cause: 'capabilities',
        message: 'ags was started with capabilities, and bubblewrap refuses to run with them.',
        hint: 'Start it without them: setpriv --inh-caps=-all --ambient-caps=-all ags doctor',
      },
    ],
  ];

  test.each(texts)('a bubblewrap that ends with "%s" becomes an error with a fix', (said, problem) => {
    using machine = createMachine(caller, { git: false });
    expect(probe(machine, program(machine, `echo "${said}" >&2; exit 1`)).problem).toEqual(problem);
  });

  test('an old bubblewrap is reported with the option that it lacks', () => {
    using machine = createMachine(caller, { git: false });
    const old = program(machine, 'echo "bwrap: Unknown option --disable-userns" >&2; exit 1');
    expect(probe(machine, old).problem).toEqual({
      cause: 'bwrap-old',
      message: `${old} does not know --disable-userns: bubblewrap 0.8 or newer is needed.`,
      hint: `Install: ${installCommand(['bubblewrap'])}`,
    });
  });

  test('an unknown error of bubblewrap is shown without control characters', () => {
    using machine = createMachine(caller, { git: false });
    const odd = program(machine, `printf 'bwrap: the moon is full \\033[2J\\n' >&2; exit 1`);
    const message = probe(machine, odd).problem?.message ?? '';
    expect(message).toContain('A test sandbox could not be started: bwrap: the moon is full ');
    expect(message).not.toContain('\u001B');
  });
});

describe('restrictions of the kernel and of a container around ags', () => {
  const programs = { bwrap: '/usr/bin/bwrap', unshare: '/usr/bin/unshare' };
  const REFUSED =
    "bwrap: No permissions to create a new namespace, likely because the kernel does not allow non-privileged user namespaces. On e.g. debian this can be enabled with 'sysctl kernel.unprivileged_userns_clone=1'.";
  const LIMIT =
    'bwrap: Creating new namespace failed: nesting depth or /proc/sys/user/max_*_namespaces exceeded (ENOSPC)';
  const ordinary = {
    'proc/sys/user/max_user_namespaces': '96343\n',
    'proc/self/uid_map': '         0          0 4294967295\n',
  };

  /** The problem for an error text, on a machine with these files. */
  function explain(said: string, files: Readonly<Record<string, string>> = {}): Problem {
    const root = mkdtempSync(join(tmpdir(), 'ags-facts-'));
    try {
      for (const [path, content] of Object.entries({ ...ordinary, ...files })) {
        mkdirSync(dirname(join(root, path)), { recursive: true });
        writeFileSync(join(root, path), content);
      }
      return explainFailure(said, { facts: readKernelFacts(root), programs });
    } finally {
      rmSync(root, { recursive: true });
    }
  }

  test('a disabled kernel setting is named, with the command that enables it', () => {
    const off = {
      cause: 'namespaces',
      message:
        'User namespaces are switched off on this machine (kernel.unprivileged_userns_clone is 0), and every sandbox needs one.',
      hint: 'Run: sudo sysctl -w kernel.unprivileged_userns_clone=1 (and to keep it: echo kernel.unprivileged_userns_clone=1 | sudo tee /etc/sysctl.d/60-ags.conf)',
    };
    const files = { 'proc/sys/kernel/unprivileged_userns_clone': '0\n' };
    expect(explain(REFUSED, files)).toEqual(off);
    expect(explain('unshare: unshare failed: Operation not permitted', files)).toEqual(off);
  });

  test('a limit of zero is distinguished from a reached one, of this machine or of the container', () => {
    expect(explain(LIMIT, { 'proc/sys/user/max_user_namespaces': '0\n' }).message).toBe(
      'User namespaces are switched off on this machine (user.max_user_namespaces is 0), and every sandbox needs one.',
    );
    expect(explain(LIMIT).message).toBe(
      'All 96343 user namespaces that this machine allows are in use (user.max_user_namespaces).',
    );
    expect(explain(LIMIT, { 'proc/sys/user/max_user_namespaces': '2147483647\n' }).message).toBe(
      'The container around ags allows no further user namespaces.',
    );
  });

  test('the AppArmor restriction comes with a profile that lifts it, without programs that have one', () => {
    const restricted = { 'proc/sys/kernel/apparmor_restrict_unprivileged_userns': '1\n' };
    const message =
      'AppArmor gives no rights in user namespaces to the programs that start a sandbox (kernel.apparmor_restrict_unprivileged_userns is 1).';
    const both =
      "Allow it for them: printf '%s\\n' 'abi <abi/4.0>,' 'profile ags-bwrap /usr/bin/bwrap flags=(unconfined) { userns, }' 'profile ags-unshare /usr/bin/unshare flags=(unconfined) { userns, }' | sudo tee /etc/apparmor.d/ags && sudo apparmor_parser -r /etc/apparmor.d/ags";
    for (const said of [
      'bwrap: setting up uid map: Permission denied',
      'bwrap: loopback: Failed RTM_NEWADDR: Operation not permitted',
      'unshare: write failed /proc/self/uid_map: Operation not permitted',
      REFUSED,
    ]) {
      expect(explain(said, restricted)).toEqual({ cause: 'apparmor', message, hint: both });
    }
    const { hint } = explain(REFUSED, { ...restricted, 'etc/apparmor.d/bwrap-userns-restrict': '' });
    expect(hint).toContain('profile ags-unshare');
    expect(hint).not.toContain('profile ags-bwrap');
  });

  test('a container that forbids user namespaces is named as the cause', () => {
    const expected = {
      cause: 'namespaces',
      message: 'The container around ags does not allow user namespaces, which every sandbox needs.',
      hint: 'Start the container with: --security-opt seccomp=unconfined --security-opt systempaths=unconfined',
    };
    expect(explain(REFUSED, { '.dockerenv': '' })).toEqual(expected);
    expect(explain(REFUSED, { 'run/.containerenv': '' })).toEqual(expected);
    expect(explain(REFUSED, { 'proc/1/cgroup': '0::/kubepods/pod1\n' })).toEqual(expected);
    expect(explain(REFUSED).message).toBe(
      'This machine does not allow you to create user namespaces, which every sandbox needs.',
    );
  });

  test('root inside a user namespace is distinguished from a file system without id-mapped mounts', () => {
    const said = 'ags: map the owner of /srv/code: Operation not permitted';
    expect(explain(said, { 'proc/self/uid_map': '0 1000 1\n' }).message).toMatch(
      /^You are root only inside a container/,
    );
    expect(explain(said).message).toBe(
      'A sandbox of root needs id-mapped mounts, and /srv/code does not allow them (Operation not permitted): Linux 5.12 and a local file system are needed.',
    );
  });

  test('the reason for a missing overlay names the file system or the kernel', () => {
    const failure = {
      said: 'mount: /s/merged: wrong fs type, bad option, bad superblock on overlay.',
      kernel: '6.1.0',
      stateDir: '/s',
    };
    const at = (fileSystem: string, kernel = failure.kernel, said = failure.said): string =>
      explainOverlay({ ...failure, said, kernel, fileSystem });
    expect(at('overlay')).toBe(
      'the state directory /s is on overlay, the file system of a container, and overlays cannot be stacked like that',
    );
    expect(at('nfs')).toBe('the state directory /s is on nfs, on which an overlay cannot write');
    expect(at('tmpfs')).toBe('the state directory /s is on tmpfs, which supports overlays only from Linux 6.6 on');
    expect(at('ext4', '5.10.0', 'mount: /s/merged: permission denied.')).toBe(
      'Linux 5.10.0 lets only root mount an overlay (5.11 and newer let every user)',
    );
    expect(at('ext4', '6.1.0', "mount: /s/merged: unknown filesystem type 'overlay'.")).toBe(
      'this kernel has no overlayfs loaded',
    );
    expect(at('ext4', '6.18.0', 'mount: something else')).toBe(
      'an overlay does not work here (the state directory /s is on ext4): mount: something else',
    );
  });
});

describe('the cached result of a probe', () => {
  const self = ONE;

  test('a bubblewrap that worked is probed once, and a changed one again', async () => {
    using machine = createMachine(self, { git: false });
    const context = contextOf(machine);
    const host = await inspectHost({ ...context, runtimeDir: '/nonexistent' });
    const counted = program(machine, `echo x >> "$(dirname "$0")/starts"; exec ${BWRAP} "$@"`);
    const starts = (): string => readFileSync(join(dirname(counted), 'starts'), 'utf8');
    expect(await workspaceKind(context, withBwrap(host, counted), 'auto')).toEqual({
      kind: 'overlay',
      why: '',
      overlays: true,
      namespaces: true,
    });
    const first = starts();
    expect(await workspaceKind(context, withBwrap(host, counted), 'auto')).toEqual({
      kind: 'overlay',
      why: '',
      overlays: true,
      namespaces: true,
    });
    expect(starts()).toBe(first);
    // The result applies to the file system, even if the state directory does not exist yet, but must be possible.
    rmSync(machine.stateDir, { recursive: true });
    await workspaceKind(context, withBwrap(host, counted), 'auto');
    expect(starts()).toBe(first);
    expect(statSync(machine.stateDir).mode & 0o777).toBe(0o700);
    rmSync(machine.stateDir, { recursive: true });
    symlinkSync('/nonexistent/elsewhere', machine.stateDir);
    await expect(workspaceKind(context, withBwrap(host, counted), 'auto')).rejects.toMatchObject({
      code: 'backend.unavailable',
      message: expect.stringContaining('The state directory'),
    });
    rmSync(machine.stateDir);
    writeFileSync(counted, '#!/bin/sh\nexit 1\n');
    await expect(workspaceKind(context, withBwrap(host, counted), 'auto')).rejects.toMatchObject({
      code: 'backend.unavailable',
    });
  });

  test('an overlay that failed for a temporary reason is tried again', async () => {
    using machine = createMachine(self, { git: false });
    const context = contextOf(machine);
    const once = join(machine.root, 'bad-moment');
    writeFileSync(once, '');
    const readOnly = "sed -z '/^--bind$/{N;/\\/merged$/s/--bind/--ro-bind/}'";
    const bwrap = program(
      machine,
      `if [ -e ${once} ]; then file=$(mktemp "$(dirname "$0")/args.XXXXXX") && ${readOnly} <&3 > "$file" && exec 3< "$file"; fi; exec ${BWRAP} "$@"`,
    );
    const host = withBwrap(await inspectHost({ ...context, runtimeDir: '/nonexistent' }), bwrap);
    expect(await workspaceKind(context, host, 'auto')).toMatchObject({ kind: 'copy' });
    rmSync(once);
    expect(await workspaceKind(context, host, 'auto')).toMatchObject({ kind: 'overlay' });
  });

  test('a start is refused each time with the message and hint of the probe', async () => {
    using machine = createMachine(self, { git: false });
    const context = contextOf(machine);
    const host = withBwrap(
      await inspectHost({ ...context, runtimeDir: '/nonexistent' }),
      altered(machine, '/^--unshare-net$/d'),
    );
    const { problem } = await trySandbox(context, host);
    const refusal = { code: 'backend.unavailable', message: problem?.message, hint: problem?.hint };
    await expect(workspaceKind(context, host, 'auto')).rejects.toMatchObject(refusal);
    await expect(workspaceKind(context, host, 'copy')).rejects.toMatchObject(refusal);
  });
});

describe('the evidence of a sandbox', () => {
  const names = ['user', 'mnt', 'pid', 'net', 'ipc', 'uts', 'cgroup'] as const;
  const outside = Object.fromEntries(names.map((name) => [name, `${name}:[1]`])) as Expected['outside'];
  const expected: Expected = { uid: 1000, limits: ['--nofile=1024', '--core=0'], readOnly: ['/', '/dev'], outside };
  const good = `==> /proc/self/status <==
Name:\ttail
Uid:\t1000\t1000\t1000\t1000
NSsid:\t2
CapInh:\t0000000000000000
CapPrm:\t0000000000000000
CapEff:\t0000000000000000
CapBnd:\t0000000000000000
CapAmb:\t0000000000000000
NoNewPrivs:\t1
Seccomp:\t2

==> /proc/self/limits <==
Max core file size        0                    0                    bytes
Max open files            1024                 1024                 files

==> /proc/net/dev <==
 face |bytes    packets errs drop
    lo:       0       0    0    0

==> /proc/self/mountinfo <==
1 0 0:1 / / ro,nosuid,nodev - tmpfs tmpfs rw
2 1 0:2 / /dev ro,nosuid - tmpfs tmpfs rw
==> namespaces <==
${names.map((name) => `${name}:[2]`).join('\n')}
==> unshare <==
unshare: unshare failed: Operation not permitted
==> written <==
==> seen <==
==> workspace <==
works
==> end <==
`;

  test('is accepted if every answer is right', () => {
    expect(judge(good, expected)).toEqual({ lacking: [], workspace: null });
  });

  test.each([
    ['    lo:', '  eth0:       0\n    lo:', 'it saw other network interfaces than loopback (eth0, lo)'],
    ['Uid:\t1000', 'Uid:\t0', 'it ran as uid 0, not as 1000'],
    ['CapBnd:\t0000000000000000', 'CapBnd:\t0000000000000001', 'it kept capabilities'],
    ['NoNewPrivs:\t1', 'NoNewPrivs:\t0', 'it could gain new privileges'],
    ['Seccomp:\t2', 'Seccomp:\t0', 'its system calls were not filtered'],
    ['failed: Operation not permitted', 'failed: No space left on device', 'its system calls were not filtered'],
    ['uts:[2]', 'uts:[1]', 'it shared the uts namespace of this machine'],
    ['/ /dev ro,', '/ /dev rw,', 'it could write in /dev'],
    ['/ / ro,', '/ / rw,errors=remount-ro,', 'it could write in /'],
    ['tmpfs rw\n==> name', 'tmpfs rw\n3 2 0:3 / /dev rw - tmpfs tmpfs rw\n==> name', 'it could write in /dev'],
    ['==> written <==\n', '==> written <==\n/dev/\n', 'it made files in /dev/'],
    ['==> seen <==\n', '==> seen <==\n/outsider\n', 'it saw files that it must not see'],
    ['1024                 1024', '10240                10240', 'its limits were not set'],
    ['==> end <==\n', '', 'it did not answer to the end'],
  ])('is refused with "%s" changed to "%s"', (from, to, lacking) => {
    expect(good).toContain(from);
    expect(judge(good.replace(from, to), expected)).toEqual({ lacking: [lacking], workspace: null });
  });

  test('without an answer counts as lacking that protection', () => {
    expect(judge('', expected).lacking).toHaveLength(10);
    expect(judge('', expected).workspace).toBe('');
  });
});
