// test/housekeeping/doctor.test.ts: `ags doctor` on this machine and on machines that lack something, with real causes: disabled namespaces, a
// state directory in memory or on an overlay, missing programs. `ags exec` reports the same.
// needs: sandbox
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { release, totalmem } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { followsPlantedLinks } from '../../src/sandbox/checks/system.ts';
import { findProgram } from '../../src/sandbox/programs.ts';
import { inspectHost } from '../../src/sandbox/checks/host.ts';
import { diagnose, type Answer, type Diagnosis } from '../../src/housekeeping/doctor.ts';
import type { HostContext } from '../../src/run/host-context.ts';
import { AGS, type Caller, CALLERS, createMachine, giveTo, type Machine, ONE } from '../harness.ts';

const isRoot = process.getuid?.() === 0;

interface Finished {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs `ags` as the machine's caller behind other programs, such as unshare. */
function behind(
  machine: Machine,
  prefix: readonly string[],
  args: readonly string[],
  options: { env?: Record<string, string>; asRoot?: boolean } = {},
): Finished {
  const [file = '', ...rest] = [...prefix, process.execPath, AGS, ...args];
  const identity = isRoot && options.asRoot !== true ? { uid: machine.uid, gid: machine.uid } : {};
  const { status, stdout, stderr } = spawnSync(file, rest, {
    ...identity,
    cwd: machine.project,
    env: { ...machine.env, ...options.env },
    encoding: 'utf8',
  });
  return { code: status, stdout, stderr };
}

function read(result: { stdout: string }): Diagnosis {
  return JSON.parse(result.stdout) as Diagnosis;
}

function answer(diagnosis: Diagnosis, id: string): Answer | undefined {
  return diagnosis.checks.find((check) => check.id === id);
}

/** The output of `ags exec` when it refuses for doctor's reason. */
function refusal(check: Answer | undefined): string {
  return check === undefined || check.status === 'ok' ? 'no reason' : `ags: ${check.message}\n     ${check.fix}\n`;
}

/** Enters a new user namespace as the same user. */
function asSelf(machine: Machine): string[] {
  return ['unshare', '--user', `--map-user=${machine.uid}`, `--map-group=${machine.uid}`];
}

function fakeBwrap(machine: Machine, script: string): string {
  const path = join(machine.root, 'bwrap');
  writeFileSync(path, `#!/bin/sh\n${script}\n`, { mode: 0o755 });
  return path;
}

describe.each(CALLERS)('for %s', (caller: Caller) => {
  test('this machine is ready, and every check has a status, a group and a fix', async () => {
    using machine = createMachine(caller);
    const result = await machine.ags(['doctor', '--json']);
    const { ready, checks } = read(result);
    expect({ code: result.code, stderr: result.stderr, ready }).toEqual({ code: 0, stderr: '', ready: true });
    expect(checks.map(({ id }) => id)).toEqual([
      'linux',
      'architecture',
      'node',
      'bubblewrap',
      'bubblewrap-links',
      'programs',
      'git',
      'terminal',
      'user-namespaces',
      'apparmor',
      'seccomp',
      'tiocsti',
      'landlock',
      'overlay',
      ...(caller === 'root' ? ['id-mapped-mounts'] : []),
      'sandbox',
      'limit-processes',
      'limit-memory',
      'limit-openFiles',
      'limit-fileSize',
      'limit-disk',
      'limit-tmp',
      'limit-cpu',
      'limit-time',
      'limit-cpus',
      'gateway',
      'disk',
      'leftovers',
      'config',
      'bare-repositories',
      'docker',
      'podman',
      'docker-inside',
    ]);
    for (const check of checks)
      expect(Object.keys(check)).toEqual([
        'id',
        'group',
        'status',
        'message',
        ...(check.status === 'ok' ? [] : ['fix']),
      ]);
    expect(answer({ ready, checks }, 'sandbox')?.message).toMatch(
      /^A complete sandbox started in \d+ ms, with every protection in force$/,
    );
    expect(readdirSync(machine.stateDir)).toEqual(['whiteout']);
  });

  test('the output has groups of lines that are readable without colour', async () => {
    using machine = createMachine(caller);
    const plain = await machine.ags(['doctor']);
    expect(plain.stdout).toMatch(/^System\n {2}✓ ok {8}Linux \d/);
    expect(plain.stdout).toMatch(/\n\nReady: ags exec works here\.\n$/);
    for (const line of plain.stdout.split('\n'))
      expect(line).toMatch(/^(|[A-Z][a-z ]+|Ready: .*| {2}(✓ ok {5}|! note {3}|✗ missing) {3}\S.*| {14}\S.*)$/u);
    const coloured = await machine.ags(['doctor'], { env: { FORCE_COLOR: '1' } });
    expect(coloured.stdout).toContain('\u001B[32m✓ ok     \u001B[0m');
  });

  test('with an invalid configuration doctor is not ready, and exec refuses in the same words', async () => {
    using machine = createMachine(caller);
    mkdirSync(join(machine.home, '.config/ags'), { recursive: true });
    writeFileSync(join(machine.home, '.config/ags/config.yaml'), 'limits:\n  memory: plenty\n');
    giveTo(machine.home, machine.uid);
    const result = await machine.ags(['doctor', '--json']);
    const check = answer(read(result), 'config');
    expect({ code: result.code, status: check?.status }).toEqual({ code: 9, status: 'missing' });
    expect((await machine.ags(['exec', '--', 'true'])).stderr).toBe(refusal(check));
  });

  test('doctor and exec report an unusable state directory in one sentence', async () => {
    using machine = createMachine(caller);
    writeFileSync(join(machine.root, 'file'), '');
    const env = { XDG_STATE_HOME: join(machine.root, 'file') };
    const result = await machine.ags(['doctor', '--json'], { env });
    const check = answer(read(result), 'sandbox');
    expect({ code: result.code, status: check?.status, message: check?.message }).toEqual({
      code: 9,
      status: 'missing',
      message: expect.stringMatching(/^The state directory .*\/file\/ags cannot be used: ENOTDIR/) as string,
    });
    const exec = await machine.ags(['exec', '--', 'true'], { env });
    expect({ code: exec.code, stderr: exec.stderr }).toEqual({ code: 9, stderr: refusal(check) });
  });

  test('with the state directory in memory, exec uses the workspace that doctor names', async () => {
    using machine = createMachine(caller);
    const state = mkdtempSync('/dev/shm/ags-it-');
    giveTo(state, machine.uid);
    try {
      const env = { XDG_STATE_HOME: state };
      const diagnosis = read(await machine.ags(['doctor', '--json'], { env }));
      const overlay = answer(diagnosis, 'overlay')?.status;
      expect({ ready: diagnosis.ready, overlay }).toEqual({ ready: true, overlay: kernelBefore(6, 6) ? 'note' : 'ok' });
      const exec = await machine.ags(
        ['exec', '--', 'sh', '-c', 'rm -r src && mkdir src && ls -A src && rm README.md && ls'],
        { env },
      );
      expect({ code: exec.code, stdout: exec.stdout }).toEqual({ code: 0, stdout: 'src\n' });
      expect(exec.stderr.includes('a full copy')).toBe(overlay === 'note');
      expect(machine.read('src/a.txt')).toBe('one\ntwo\nthree\n');
    } finally {
      execFileSync('chmod', ['-R', 'u+rwX', state]);
      rmSync(state, { recursive: true });
    }
  });

  test.runIf(isRoot)("on a container's file system workspaces are copies, and a requested overlay is refused", () => {
    using machine = createMachine(caller);
    const state = join(machine.root, 'state');
    for (const dir of ['lower', 'upper', 'work', 'merged']) mkdirSync(join(state, dir), { recursive: true });
    giveTo(state, machine.uid);
    const mounted = `mount -t overlay overlay -o lowerdir=${state}/lower,upperdir=${state}/upper,workdir=${state}/work ${state}/merged`;
    const prefix = [
      'unshare',
      '--mount',
      'sh',
      '-c',
      `${mounted} && exec setpriv --reuid ${machine.uid} --regid ${machine.uid} --clear-groups "$@"`,
      'sh',
    ];
    const inside = (args: readonly string[]): Finished =>
      behind(machine, prefix, args, { env: { XDG_STATE_HOME: join(state, 'merged') }, asRoot: true });
    const why = `the state directory ${state}/merged/ags is on overlay, the file system of a container, and overlays cannot be stacked like that`;
    const diagnosis = read(inside(['doctor', '--json']));
    expect(diagnosis.ready).toBe(true);
    expect(answer(diagnosis, 'overlay')).toEqual({
      id: 'overlay',
      group: 'Sandbox',
      status: 'note',
      message: `Workspaces are full copies, because ${why}.`,
      fix: 'Put the state of ags on a local disk: export XDG_STATE_HOME=<directory on ext4, xfs or btrfs>',
    });
    const copy = inside(['exec', '--', 'cat', 'src/a.txt']);
    expect({ code: copy.code, stdout: copy.stdout, stderr: copy.stderr }).toEqual({
      code: 0,
      stdout: 'one\ntwo\nthree\n',
      stderr: `ags: Workspace: a full copy, because ${why}.\n`,
    });
    const overlay = inside(['exec', '--workspace', 'overlay', '--', 'true']);
    expect({ code: overlay.code, stderr: overlay.stderr }).toEqual({
      code: 9,
      stderr: `ags: An overlay workspace is not possible: ${why}.\n     Allow a full copy with: --workspace copy\n`,
    });
  });

  test('leftovers of a killed sandbox are a note, not an error', async () => {
    using machine = createMachine(caller);
    const child = machine.start(['exec', '--', 'sh', '-c', 'echo started; sleep 100']);
    await new Promise((resolve) => child.stdout?.once('data', resolve));
    const gone = new Promise((resolve) => child.on('close', resolve));
    child.kill('SIGKILL');
    await gone;
    const diagnosis = read(await machine.ags(['doctor', '--json']));
    const check = answer(diagnosis, 'leftovers');
    expect({ ready: diagnosis.ready, status: check?.status, fix: check?.status === 'note' ? check.fix : '' }).toEqual({
      ready: true,
      status: 'note',
      fix: 'Run: ags cleanup',
    });
    expect(check?.message).toContain('1 task');
  });
});

describe('without user namespaces', () => {
  test('when disabled, doctor and exec end with 9, the same sentence and the command that enables them', () => {
    using machine = createMachine('user');
    // Limits our own user namespace, which has the same effect on everything inside.
    const off = [
      ...asSelf(machine),
      '--keep-caps',
      'sh',
      '-c',
      'echo 0 > /proc/sys/user/max_user_namespaces && exec setpriv --inh-caps=-all --ambient-caps=-all "$@"',
      'sh',
    ];
    const doctor = behind(machine, off, ['doctor', '--json']);
    const expected = {
      message:
        'User namespaces are switched off on this machine (user.max_user_namespaces is 0), and every sandbox needs one.',
      fix: 'Run: sudo sysctl -w user.max_user_namespaces=15000 (and to keep it: echo user.max_user_namespaces=15000 | sudo tee /etc/sysctl.d/60-ags.conf)',
    };
    expect(doctor.code).toBe(9);
    expect(answer(read(doctor), 'user-namespaces')).toEqual({
      id: 'user-namespaces',
      group: 'Kernel',
      status: 'missing',
      ...expected,
    });
    expect(answer(read(doctor), 'sandbox')).toEqual({
      id: 'sandbox',
      group: 'Sandbox',
      status: 'missing',
      ...expected,
    });
    expect(behind(machine, off, ['exec', '--', 'true'])).toEqual({
      code: 9,
      stdout: '',
      stderr: `ags: ${expected.message}\n     ${expected.fix}\n`,
    });
    expect(behind(machine, off, ['doctor']).stdout).toMatch(
      /\nNot ready: ags exec does not work until you fix the 2 lines marked "missing"\.\n$/,
    );
  });

  test('when an outer container used them up, doctor names the container', () => {
    using machine = createMachine('user');
    const full = [
      'unshare',
      '--user',
      '--map-root-user',
      'sh',
      '-c',
      `echo 1 > /proc/sys/user/max_user_namespaces && exec "$@"`,
      'sh',
      ...asSelf(machine),
    ];
    const check = answer(read(behind(machine, full, ['doctor', '--json'])), 'sandbox');
    expect(check).toMatchObject({
      status: 'missing',
      message: 'The container around ags allows no further user namespaces.',
    });
    expect(behind(machine, full, ['exec', '--', 'true'])).toEqual({ code: 9, stdout: '', stderr: refusal(check) });
  });

  test('root inside a container is told to use another user', () => {
    using machine = createMachine('user');
    const fake = ['unshare', '--user', '--map-root-user'];
    const check = answer(read(behind(machine, fake, ['doctor', '--json'])), 'sandbox');
    expect(check?.message).toMatch(/^You are root only inside a container/);
    expect(behind(machine, fake, ['exec', '--', 'true'])).toEqual({ code: 9, stdout: '', stderr: refusal(check) });
  });
});

describe('with missing programs', () => {
  const PROGRAMS = ['bwrap', 'unshare', 'setsid', 'prlimit', 'perl'];

  async function without(absent: readonly string[]): Promise<{ diagnosis: Diagnosis; exec: unknown }> {
    using machine = createMachine(ONE, { git: false });
    const dir = join(machine.root, 'programs');
    mkdirSync(dir);
    for (const name of PROGRAMS.filter((program) => !absent.includes(program)))
      symlinkSync(findProgram(name) ?? '/nonexistent', join(dir, name));
    const context: HostContext = {
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
    const programDirs = [dir];
    const exec = await inspectHost({ ...context, runtimeDir: '/nonexistent', programDirs }).then(
      () => null,
      (error: unknown) => error,
    );
    return { diagnosis: await diagnose(context, { programDirs }), exec };
  }

  test('without bubblewrap nothing starts, and doctor and exec say so in the same words', async () => {
    const { diagnosis, exec } = await without(['bwrap']);
    expect(diagnosis.ready).toBe(false);
    const check = answer(diagnosis, 'sandbox');
    expect(check).toMatchObject({
      status: 'missing',
      message: 'The sandbox needs bwrap, which is not installed.',
      fix: expect.stringMatching(/^Install: sudo .* bubblewrap$/) as string,
    });
    expect(exec).toMatchObject({
      code: 'backend.unavailable',
      message: check?.message,
      hint: check?.status === 'missing' ? check.fix : '',
    });
    expect(answer(diagnosis, 'bubblewrap')).toMatchObject({ status: 'missing', message: check?.message });
  });

  test('installed programs do not hide a missing one', async () => {
    const { diagnosis, exec } = await without(['setsid', 'prlimit']);
    expect(answer(diagnosis, 'programs')).toMatchObject({
      status: 'missing',
      message: 'The sandbox needs setsid, prlimit, which are not installed.',
    });
    expect(exec).toMatchObject({ message: 'The sandbox needs setsid, prlimit, which are not installed.' });
  });

  test('a program outside the system directories is reported as invisible inside', async () => {
    const { diagnosis, exec } = await without([]);
    expect(exec).toBeNull();
    expect(diagnosis.checks.filter(({ status }) => status === 'missing').map(({ id }) => id)).toEqual(['sandbox']);
    expect(answer(diagnosis, 'sandbox')?.message).toMatch(
      /^\S+\/prlimit cannot be started inside a sandbox \(No such file or directory\)/,
    );
  });
});

describe('a bubblewrap that follows planted links', () => {
  test('is distinguished from a safe one and from one that does not start; nothing is left behind', async () => {
    using machine = createMachine(ONE, { git: false });
    const state = join(machine.root, 'state');
    mkdirSync(state);
    // Mimics the flaw: follows the link in the directory bound at /h.
    const follows = fakeBwrap(
      machine,
      'while [ "$2" != /h ]; do shift; done; link=$(readlink "$1/.config"); mkdir "${link#/oldroot}/planted"',
    );
    expect(await followsPlantedLinks(follows, state)).toBe('follows');
    expect(
      await followsPlantedLinks(
        fakeBwrap(
          machine,
          'echo "bwrap: Can\'t mkdir parents for /h/.config/planted: Too many levels of symbolic links" >&2; exit 1',
        ),
        state,
      ),
    ).toBe('refuses');
    expect(
      await followsPlantedLinks(
        fakeBwrap(machine, 'echo "bwrap: No permissions to create a new namespace" >&2; exit 1'),
        state,
      ),
    ).toBe('unknown');
    expect(['follows', 'refuses']).toContain(await followsPlantedLinks('/usr/bin/bwrap', state));
    expect(readdirSync(state)).toEqual([]);
  });
});

test('doctor takes no arguments', async () => {
  using machine = createMachine(ONE, { git: false });
  const { code, stdout, stderr } = await machine.ags(['doctor', 'now']);
  expect({ code, stdout, stderr }).toEqual({
    code: 2,
    stdout: '',
    stderr:
      'ags: ags doctor takes no arguments; not used: now\n     Usage: ags doctor [--attack [--backend <name>]] [--json]\n',
  });
  expect(existsSync(machine.stateDir)).toBe(false);
});

function kernelBefore(major: number, minor: number): boolean {
  const [a = 0, b = 0] = release()
    .split('.')
    .map((part) => Number.parseInt(part, 10));
  return a < major || (a === major && b < minor);
}
