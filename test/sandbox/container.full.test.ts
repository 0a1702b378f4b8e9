// test/sandbox/container.full.test.ts: containers only: leftovers of a killed runner, cleanup, and the plan.
import { execFile, execFileSync, spawn, spawnSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  readlinkSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, test } from 'vitest';
import { machineMark } from '../../src/sandbox/engine/owner.ts';
import { ENGINE } from '../conformance/docker-backend.ts';
import { openEngine } from '../conformance/engine-backend.ts';
import { HAS_ENGINE } from '../conformance/engine.ts';
import { createPlace } from '../conformance/place.ts';
import {
  AGS,
  asMember,
  CALLERS,
  createMachine,
  ROOTS_USER,
  IS_ROOT,
  type Machine,
  shareReadiness,
} from '../harness.ts';
import { engine, tinyImage } from '../images/tiny-image.ts';

// Not /var/tmp: inside it is /tmp, so paths would have two names.
const PLACE = '/var/lib';
let machine: Machine | undefined;
afterEach(() => machine?.[Symbol.dispose]());

/** The mark of root's containers on this machine. */
const OURS = `${machineMark()}.0`;
const processOf = (owner: string): string => /\d+(?=:)/.exec(owner)?.[0] ?? '';

/** The process that listens on the engine's socket. */
function enginePid(): string {
  const ask = `my $s; socket($s, 1, 1, 0) && connect($s, pack 'Sa108', 1, $ARGV[0]) or die $!; print unpack 'i', getsockopt $s, 1, 17`;
  return execFileSync('perl', ['-e', ask, ENGINE.socket ?? ''], { encoding: 'utf8' });
}

/** Containers, volumes and mounts of this task. */
function left(task: string): string[] {
  return [
    ...engine('ps', '--all', '--quiet', '--filter', `label=ags.run=${task}`).split('\n'),
    ...engine('volume', 'ls', '--quiet', '--filter', `label=ags.run=${task}`).split('\n'),
    ...readdirSync('/run').filter((name) => name.startsWith(`ags-${task}-`)),
    ...readFileSync('/proc/self/mountinfo', 'utf8')
      .split('\n')
      .filter((line) => line.includes(`ags-${task}-`)),
  ].filter((line) => line !== '');
}

/** Runs ags as a member of the group "docker". */
async function agsIn(where: Machine, verb: string, args: readonly string[]): Promise<string> {
  shareReadiness(where);
  const [program, ...before] = asMember(where.uid, 'docker');
  const { stdout } = await promisify(execFile)(program, [...before, process.execPath, AGS, verb, ...args], {
    cwd: where.project,
    env: where.env,
  });
  return stdout;
}

test.runIf(HAS_ENGINE)('a container that ends before its first message fails at once', async () => {
  const dir = mkdtempSync(join(PLACE, 'ags-silent-'));
  // Imitates a container that was killed at once: the engine reports a start, and no container exists.
  const program = join(dir, 'docker');
  writeFileSync(
    program,
    `#!/bin/sh\ncase "$*" in *run*--detach*-agent*) exit 0 ;; esac\nexec ${ENGINE.program} "$@"\n`,
    { mode: 0o755 },
  );
  using place = await createPlace(openEngine({ ...ENGINE, program }, { root: [], etc: [] }));
  try {
    await expect(place.start(['true'])).rejects.toThrow('The container ended before the command could start');
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
});

// Root's mounts for a container exist below /run for a moment, with the socket that passes the command's streams and variables.
test.runIf(HAS_ENGINE && IS_ROOT)(
  'other users cannot see or enter the mounts for a container of root while it starts',
  async () => {
    const dir = mkdtempSync(join(PLACE, 'ags-look-'));
    chmodSync(dir, 0o755);
    const [program, script, seen] = [join(dir, 'docker'), join(dir, 'look'), join(dir, 'seen')];
    // Lists the mounts as root, then tries to use them as an ordinary user, in the mount namespace of the engine.
    writeFileSync(
      script,
      `#!/bin/sh
for _ in $(seq 100); do
  found=$(find /run/ags-test-${process.pid}-* -maxdepth 3 | sort)
  case "$found" in */gate/s*) break ;; esac
  sleep 0.1
done
printf '%s\\n' "$found" | sed -n 's,.*/gate/s$,root sees the socket,p'
setpriv --reuid 42424 --regid 42424 --clear-groups perl -MSocket -e '
  for (@ARGV) {
    opendir(my $d, $_) and print "listed $_\\n";
    socket(my $s, AF_UNIX, SOCK_STREAM, 0);
    m{/s$} && connect($s, sockaddr_un($_)) and print "met $_\\n";
    lstat $_ and !m{^/run/[^/]+$} and print "saw $_\\n";
  }' $found
`,
      { mode: 0o755 },
    );
    writeFileSync(
      program,
      `#!/bin/sh\ncase "$*" in *run*--detach*-agent*) nsenter --mount=/proc/${enginePid()}/ns/mnt ${script} >${seen} 2>&1 ;; esac\nexec ${ENGINE.program} "$@"\n`,
      { mode: 0o755 },
    );
    using place = await createPlace(openEngine({ ...ENGINE, program }, { root: [], etc: [] }));
    try {
      // The first process that connects to the socket would get the streams and variables.
      const sandbox = await place.start(['true']).catch((error: unknown) => String(error));
      expect(readFileSync(seen, 'utf8')).toBe('root sees the socket\n');
      expect(typeof sandbox === 'string' ? sandbox : await sandbox.done).toBe(0);
      expect(readdirSync('/run').filter((name) => name.startsWith(`ags-test-${process.pid}-`))).toEqual([]);
    } finally {
      rmSync(dir, { recursive: true, force: true });
    }
  },
);

describe.runIf(HAS_ENGINE).each(CALLERS)('for %s', (caller) => {
  test('an agent, its restart, its checks and its merge work in a container as they do natively', async () => {
    machine = createMachine(caller, { disk: PLACE });
    machine.write('ags.yaml', 'checks: [test -f NOTES.md]\n');
    machine.git('add', '-A');
    machine.git('commit', '-qm', 'checks');
    const here = machine;
    const ags = (verb: string, ...args: string[]): Promise<string> => agsIn(here, verb, args);
    const events = await ags('start', '--backend', 'docker', '--agent', 'demo', 'greet');
    expect(events).toContain('exfiltration.example:443 refused');
    expect(await ags('show', 'greet')).toMatch(/sandbox +docker · overlay/);
    expect(await ags('diff', 'greet', '--stat')).toContain('NOTES.md');
    expect(await ags('restart', 'greet')).toContain('2 files');
    expect(await ags('check', 'greet')).toContain('passed');
    await ags('merge', 'greet');
    expect(machine.read('NOTES.md')).toContain('Goal: greet');
    expect(await ags('rm', '--yes', 'greet')).toContain('Removed greet');
    expect(left('greet')).toEqual([]);
  }, 120_000);

  test.for([
    ['the command itself', 'exec perl -e "$GREED"', 137],
    ['a process below it', 'perl -e "$GREED"; exit 5', 5],
  ] as const)('a command that the kernel kills for lack of memory says so: %s', async ([, line, code]) => {
    machine = createMachine(caller, { disk: PLACE });
    const here = machine;
    const exec = (script: string): Promise<unknown> =>
      agsIn(here, 'exec', ['--backend', 'docker', '--limit', 'memory=256m', '--', 'sh', '-c', script]).catch(
        ({ code, stderr }: { code: number; stderr: string }) => ({ code, stderr }),
      );
    const greedy = await exec(`GREED='my $all = chr(97) x (600 << 20); sleep 9'; ${line}`);
    expect(greedy).toEqual({
      code,
      stderr: expect.stringContaining('together they used the 256 MB of memory allowed (limits.memory)'),
    });
    expect(await exec('kill -9 $$')).toEqual({ code: 137, stderr: expect.not.stringContaining('memory') });
  });
});

describe.runIf(HAS_ENGINE && IS_ROOT)('for an ordinary user', () => {
  test('root-owned overlay files of a killed ags are removed by the next command', async () => {
    machine = createMachine('user', { disk: PLACE });
    const here = machine;
    await agsIn(here, 'exec', ['--backend', 'docker', '--', 'true']);
    const [program, ...before] = asMember(machine.uid, 'docker');
    const command = [
      'exec',
      '--backend',
      'docker',
      '--name',
      'killed',
      '--',
      'sh',
      '-c',
      'rm -r src; echo up; sleep 600',
    ];
    const child = spawn(program, [...before, process.execPath, AGS, ...command], { cwd: here.project, env: here.env });
    await new Promise<void>((resolve) => child.stdout.on('data', () => resolve()));
    const [task = ''] = machine.tasks();
    child.kill('SIGKILL');
    for (const end = Date.now() + 10_000; left(task).length > 0 && Date.now() < end;) await sleep(100);
    const work = join(machine.stateDir, 'engine-work');
    expect(readdirSync(work)).toHaveLength(1);
    await agsIn(here, 'rm', ['--yes', task]);
    expect(machine.tasks()).toEqual([]);
    await agsIn(here, 'exec', ['--backend', 'docker', '--', 'true']);
    expect(readdirSync(work)).toEqual([]);
  });
});

// As root only: access to an engine amounts to root.
describe.runIf(HAS_ENGINE && process.getuid?.() === 0)('a container', () => {
  test('ends when its ags is killed, and leaves nothing in the engine', async () => {
    machine = createMachine('root', { disk: PLACE });
    shareReadiness(machine);
    const child = machine.start([
      'exec',
      '--backend',
      'docker',
      '--name',
      'killed',
      '--',
      'sh',
      '-c',
      'echo up; sleep 600',
    ]);
    await new Promise<void>((resolve) => child.stdout?.on('data', () => resolve()));
    const [task = ''] = machine.tasks();
    expect(left(task).length).toBeGreaterThanOrEqual(2);
    child.kill('SIGKILL');
    for (const end = Date.now() + 30_000; left(task).length > 0 && Date.now() < end;) await sleep(100);
    expect(left(task)).toEqual([]);
  });

  test('that was created but never started is removed by its label, unless its owner is alive', async () => {
    machine = createMachine('root', { disk: PLACE });
    await machine.ags(['exec', '--backend', 'docker', '--network', 'off', '--', 'true']);
    const image = engine('images', '--quiet', '--filter', 'label=ags.image=skeleton').split('\n')[0] ?? '';
    const runOf = (at: number): string => `cut-off-${process.pid}-${at}`;
    const make = (owner: string, at: number): string =>
      engine(
        'create',
        '--name',
        `ags-cut-off-${process.pid}-${processOf(owner)}-x${at}`,
        '--label',
        `ags.run=${runOf(at)}`,
        '--label',
        `ags.owner=${owner}`,
        image,
        '/nothing',
      );
    const stat = readFileSync('/proc/self/stat', 'utf8');
    const ticks = stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19];
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
    const here = /\d+/.exec(readlinkSync('/proc/self/ns/pid'))?.[0];
    const [mine, elsewhere, foreign] = [
      make(`${OURS}/${process.pid}:${boot}:${ticks}:${here}`, 1),
      // An owner in another PID namespace that uses the same engine.
      make(`${OURS}/999999999:${boot}:1:1`, 2),
      engine('create', image, '/nothing'),
    ];
    try {
      // Any other ags of root may remove it first; then this cleanup does not print it.
      let [at, dead, said] = [9, '', ''];
      do {
        at += 1;
        dead = make(`${OURS}/999999999:x:1:1`, at);
        said = (await machine.ags(['cleanup', '--yes'])).stdout;
      } while (!said.includes(runOf(at)) && at < 19);
      expect(said).toContain(runOf(at));
      const there = engine('ps', '--all', '--quiet', '--no-trunc').split('\n');
      expect([dead, mine, elsewhere, foreign].map((id) => there.includes(id))).toEqual([false, true, true, true]);
    } finally {
      for (const id of [mine, elsewhere, foreign]) engine('rm', '--force', id);
    }
  });

  test('that did not start leaves mounts, which cleanup removes without changing the mounted files', async () => {
    machine = createMachine('root', { disk: PLACE });
    machine.write('kept', 'x');
    // The second has the layout of earlier builds.
    const stagesOf = (round: number): string[] =>
      ['', 'old'].map((how) => `/run/ags-cut${how}-${process.pid}-999999999-x${round}`);
    const placesOf = (round: number): string[] =>
      stagesOf(round).map((stage, at) => (at === 0 ? join(stage, 'd') : stage));
    let round = -1;
    try {
      // Any other cleanup of root may remove them first; then this cleanup does not print them.
      let stages: string[];
      let stdout: string;
      do {
        round += 1;
        for (const place of placesOf(round)) {
          mkdirSync(place, { recursive: true, mode: 0o700 });
          spawnSync('mount', ['--bind', machine.project, place]);
        }
        stages = stagesOf(round);
        ({ stdout } = await machine.ags(['cleanup', '--yes']));
      } while (!stages.every((stage) => stdout.includes(stage)) && round < 9);
      expect(stages.map((stage) => [stdout.includes(stage), existsSync(stage)])).toEqual([
        [true, false],
        [true, false],
      ]);
      expect(machine.read('kept')).toBe('x');
    } finally {
      for (const place of placesOf(round)) spawnSync('umount', ['--lazy', place], { stdio: 'ignore' });
    }
  });

  test('of another machine or another user is kept, even if its process is not visible here', async () => {
    machine = createMachine('root', { disk: PLACE });
    await machine.ags(['exec', '--backend', 'docker', '--network', 'off', '--', 'true']);
    const image = engine('images', '--quiet', '--filter', 'label=ags.image=skeleton').split('\n')[0] ?? '';
    const others = [
      // An engine's socket may lead to another machine, for example over ssh, with another root.
      '0123456789abcdef.0/999999999:x:1:1',
      // Another member of the group "docker", whose processes may be hidden.
      `${machineMark()}.42424/999999999:x:1:1`,
      `${OURS}0/999999999:x:1:1`,
      // The format of earlier builds.
      '999999999:x:1:1',
    ].map((owner, at) =>
      engine(
        'create',
        '--name',
        `ags-theirs-${process.pid}-${processOf(owner)}-x${at}`,
        '--label',
        'ags.run=theirs',
        '--label',
        `ags.owner=${owner}`,
        image,
        '/nothing',
      ),
    );
    try {
      await machine.ags(['exec', '--backend', 'docker', '--network', 'off', '--', 'true']);
      const cleanup = await machine.ags(['cleanup', '--yes']);
      const there = engine('ps', '--all', '--quiet', '--no-trunc').split('\n');
      expect(others.map((id) => there.includes(id))).toEqual([true, true, true, true]);
      expect(cleanup.stdout).not.toContain('theirs');
    } finally {
      for (const id of others) spawnSync(ENGINE.program, ['rm', '--force', id], { env: ENGINE.env });
    }
  });

  test("of another program is kept, whatever its image's labels claim", async () => {
    using plain = tinyImage();
    using bait = tinyImage({ says: [`LABEL ags.run=bait ags.owner=${OURS}/999999999:x:1:1`] });
    machine = createMachine('root', { disk: PLACE });
    const [victim, marked] = [engine('create', plain.name, '/nothing'), engine('create', bait.name, '/nothing')];
    // A label may contain line breaks, followed by text that looks like another container.
    const line = `${victim.slice(0, 12)}\tbait\t${OURS}/999999999:x:1:1`;
    const named = `${victim.slice(0, 12)}\tags-x-999999999-x\t"bait"\t"${OURS}/999999999:x:1:1"`;
    const liar = engine(
      'create',
      '--label',
      `ags.run=x\n${line}\n${named}\n`,
      '--label',
      `ags.owner=${OURS}/999999999:x:1:1\n${named}`,
      bait.name,
      '/nothing',
    );
    const all = [victim, marked, liar];
    try {
      const cleanup = await machine.ags(['cleanup', '--yes']);
      await machine.ags(['exec', '--backend', 'docker', '--network', 'off', '--', 'true']);
      const there = engine('ps', '--all', '--quiet', '--no-trunc').split('\n');
      expect(all.map((id) => there.includes(id))).toEqual([true, true, true]);
      expect(cleanup.stdout).not.toContain('bait');
    } finally {
      for (const id of all) spawnSync(ENGINE.program, ['rm', '--force', id], { env: ENGINE.env });
    }
  });

  test('has its mark and every protection on its command line, as ags plan shows', async () => {
    machine = createMachine('root', { disk: PLACE });
    const { stdout } = await machine.ags(['plan', '--backend', 'docker', '--json', '--', 'true']);
    const { argv, beside, label } = JSON.parse(stdout) as {
      argv: string[];
      label: string;
      beside: { what: string; argv: string[] }[];
    };
    const pairs = argv.map((word, at) => `${word} ${argv[at + 1]}`);
    for (const part of [
      '--cap-drop ALL',
      '--security-opt no-new-privileges',
      '--ipc none',
      '--cgroupns private',
      `--user ${ROOTS_USER}:${ROOTS_USER}`,
    ])
      expect(pairs).toContain(part);
    expect(argv).toContain('--read-only');
    expect(argv.find((word) => word.startsWith('container:'))).toBe('container:ags-<new>-net');
    expect(argv.some((word) => word.includes('docker.sock'))).toBe(false);
    expect(argv.find((word) => word.startsWith('ags.owner='))).toMatch(new RegExp(`^ags\\.owner=${OURS}/\\d+:`));
    expect(beside.map(({ what }) => what)).toHaveLength(3);
    expect(label).toMatch(/^docker · overlay /);
  });
});
