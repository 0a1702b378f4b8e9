// test/attacks/lifetime.test.ts: no process or file of a sandbox outlives it, whatever the sandbox does and however it ends.
// needs: sandbox
import { randomBytes } from 'node:crypto';
import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { CALLERS, createMachine, ROOTS_USER, type Machine } from '../harness.ts';
import { endProcessesWith, processesWith, readProc, startReady, until } from './host-view.ts';
import { prepareMutant, without } from './mutation/mutant.ts';
import { identity } from './run-inside.ts';
import { createVictims } from './victims.ts';

const newWord = (): string => `word-${randomBytes(6).toString('hex')}`;

describe.concurrent.each(CALLERS)('as %s', (caller) => {
  test('A22: killing every process inside kills none of the host', async () => {
    using machine = createMachine(caller);
    await using victims = await createVictims(machine);
    const run = await machine.ags(['exec', '--', 'perl', '-e', 'kill 9, -1; kill 9, 0']);
    expect(run.code).not.toBe(0);
    expect(victims.touched()).toEqual([]);
  });

  test('A23: a process that left its session and its parents ends with the command', async () => {
    using machine = createMachine(caller);
    const word = newWord();
    await machine.ags([
      'exec',
      '--',
      'sh',
      '-c',
      `(setsid setsid sh -c 'trap "" TERM HUP INT; sleep 300; : ${word}' > /dev/null 2>&1 &) ; nohup sh -c 'sleep 300; : ${word}' > /dev/null 2>&1 & exit 0`,
    ]);
    expect(processesWith(word)).toEqual([]);
  });

  test.for(['SIGKILL', 'SIGTERM', 'SIGHUP'] as const)(
    'A18: when ags gets %s in the middle, nothing runs on and the project is as it was',
    async (signal) => {
      using machine = createMachine(caller);
      const [word, before] = [newWord(), machine.git('status', '--porcelain')];
      const child = await startReady(machine, [
        'sh',
        '-c',
        `setsid sh -c 'sleep 300; : ${word}' & echo planted > planted.txt; rm README.md; echo ready; sleep 300; : ${word}`,
      ]);
      child.kill(signal);
      expect(await until(() => processesWith(word).length === 0)).toBe(true);
      expect({ status: machine.git('status', '--porcelain'), planted: machine.has('planted.txt') }).toEqual({
        status: before,
        planted: false,
      });
      const next = await machine.ags(['exec', '--', 'cat', 'README.md']);
      expect({ code: next.code, stdout: next.stdout }).toEqual({ code: 0, stdout: '# project\n' });
    },
  );

  test('A18: when ags is killed while the sandbox is being made, the command never runs', async () => {
    using machine = createMachine(caller);
    await machine.ags(['exec', '--', 'true']);
    const word = newWord();
    try {
      await catchLauncher(machine, word);
      expect(await until(() => processesWith(word).length === 0)).toBe(true);
    } finally {
      endProcessesWith(word);
    }
  });

  test('A18: bubblewrap itself arranges to end with ags: any earlier, its first process would wait for ever', async () => {
    using machine = createMachine(caller);
    const asks = `my $n = pack 'i', 0; syscall(${process.arch === 'arm64' ? 167 : 157}, 2, $n); print 'signal ', unpack 'i', $n`;
    const { argv, env } = await prepareMutant(
      machine,
      {
        launch: (launch) => ({
          ...launch,
          argv: launch.argv.flatMap((word) => (word.endsWith('/bwrap') ? ['perl', '-e', asks, '--'] : [word])),
        }),
      },
      ['true'],
    );
    const [file = '', ...args] = argv;
    const run = spawnSync(file, args, { cwd: '/', env: { ...env }, ...identity(machine), encoding: 'utf8' });
    expect(run.stdout, run.stderr).toBe('signal 0');
  });

  test('A34: no process of the sandbox is root on the host, or can become root', async () => {
    using machine = createMachine(caller);
    const word = newWord();
    const child = await startReady(machine, ['sh', '-c', `echo ready; sleep 300; : ${word}`]);
    const seen = processesWith(word)
      .map((pid) => readProc(pid, 'status'))
      .filter((status) => /^NSpid:\s+\d+\s+\d+/m.test(status));
    const facts = seen.map((status) => ({
      uids: [...new Set(/^Uid:\s+(.*)$/m.exec(status)?.[1]?.split(/\s+/))],
      groups:
        /^Groups:\s*(.*)$/m
          .exec(status)?.[1]
          ?.trim()
          .split(/\s+/)
          .filter((group) => group === '0') ?? [],
      capabilities: [...new Set([...status.matchAll(/^Cap\w+:\s+(\w+)$/gm)].map(([, set]) => set))],
      noNewPrivs: /^NoNewPrivs:\s+(\d)/m.exec(status)?.[1],
    }));
    child.kill('SIGKILL');
    expect(seen.length).toBeGreaterThan(1);
    const uid = String(caller === 'root' ? ROOTS_USER : machine.uid);
    expect(facts).toEqual(
      facts.map(() => ({ uids: [uid], groups: [], capabilities: ['0000000000000000'], noNewPrivs: '1' })),
    );
  });

  test.runIf(process.arch === 'x64').for(['the deadline', 'SIGKILL to ags'] as const)(
    'A149: a command that rewrites the first process in memory does not outlive %s',
    async (end) => {
      using machine = createMachine(caller);
      const word = newWord();
      try {
        const child = await startReady(
          machine,
          ['perl', '-e', `${TAKE_OVER}\n# ${word}`],
          end === 'the deadline' ? ['--limit', 'time=10s'] : [],
        );
        if (end !== 'the deadline') child.kill('SIGKILL');
        expect(await until(() => child.exitCode !== null || child.signalCode !== null)).toBe(true);
        expect(await until(() => processesWith(word).length === 0)).toBe(true);
      } finally {
        endProcessesWith(word);
      }
    },
  );

  test('without --die-with-parent a sandbox outlives its parent, with it none does', async () => {
    using machine = createMachine(caller);
    const survives = async (mutated: boolean): Promise<boolean> => {
      const word = newWord();
      const { argv, env } = await prepareMutant(
        machine,
        mutated ? { launch: (launch) => without(launch, '--die-with-parent') } : {},
        ['sh', '-c', `echo ready; sleep 300; : ${word}`],
      );
      // A parent between this test and the sandbox, to be killed.
      const parent = spawn('sh', ['-c', '"$@" & wait', 'sh', ...argv], {
        cwd: '/',
        env,
        ...identity(machine),
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      await new Promise((resolve) => parent.stdout?.once('data', resolve));
      parent.kill('SIGKILL');
      const gone = await until(() => processesWith(word).length === 0, mutated ? 1500 : undefined);
      endProcessesWith(word);
      return !gone;
    };
    expect({ whole: await survives(false), mutated: await survives(true) }).toEqual({ whole: false, mutated: true });
  });

  test('A147: a removed task leaves nothing, whatever the modes and depth of its directories', async () => {
    using machine = createMachine(caller);
    const program =
      'mkdir "a"; chdir "a"; for (1 .. 60) { mkdir "d" x 200 or last; chdir "d" x 200 } chdir $ENV{HOME}; mkdir "x"; open my $f, ">", "x/y"; chmod 0, "x/y"; chmod 0, "x"; symlink "/", "root"; symlink ".", "loop"; mkdir "many"; for (1 .. 500) { open my $f, ">", "many/$_" }';
    await machine.ags(['exec', '--review', 'later', '--', 'perl', '-e', program]);
    for (const id of machine.tasks()) await machine.ags(['rm', id, '--yes']);
    expect(machine.tasks()).toEqual([]);
    expect(existsSync(join(machine.home, 'code/project/README.md'))).toBe(true);
  });
});

/** Stops the launcher before it becomes bubblewrap, kills ags, and continues the launcher. */
async function catchLauncher(machine: Machine, word: string): Promise<void> {
  for (let attempt = 0; attempt < 40; attempt++) {
    const child = machine.start(['exec', '--', 'sh', '-c', `sleep 300; : ${word}`]);
    const launcher = await firstOther(word, child);
    if (launcher !== null && isEarly(launcher)) {
      process.kill(launcher, 'SIGSTOP');
      if (isEarly(launcher)) {
        child.kill('SIGKILL');
        await until(() => child.signalCode !== null);
        process.kill(launcher, 'SIGCONT');
        return;
      }
    }
    child.kill('SIGKILL');
    endProcessesWith(word);
    await until(() => processesWith(word).length === 0);
  }
  throw new Error('the launcher was too quick to be caught');
}

function isEarly(pid: number): boolean {
  return /^(unshare|sh|perl)\0/.test(readProc(pid, 'cmdline'));
}

async function firstOther(word: string, child: ChildProcess): Promise<number | null> {
  let found: number | undefined;
  await until(
    () => (found = processesWith(word).find((pid) => pid !== child.pid)) !== undefined || child.exitCode !== null,
    20_000,
    0,
  );
  return found ?? null;
}

/**
 * Overwrites the code where bubblewrap's first process waits for its children: it gives up the death signal, then waits for ever. A child
 * that ends makes it run. If the memory cannot be written, the program prints "ready" anyway.
 */
const TAKE_OVER = String.raw`
$| = 1;
if (open my $f, '<', '/proc/1/syscall') {
  my $at = hex((split ' ', scalar <$f>)[-1]);
  my $code = "\xb8\x9d\x00\x00\x00\xbf\x01\x00\x00\x00\x31\xf6\x0f\x05" . "\xb8\x22\x00\x00\x00\x0f\x05\xeb\xf7";
  if (open my $m, '+<', '/proc/1/mem') { sysseek $m, $at, 0; syswrite $m, $code }
  if (!fork) { if (!fork) { select undef, undef, undef, 0.2; exit 0 } exit 0 }
  wait;
}
$SIG{$_} = 'IGNORE' for qw(PIPE HUP TERM);
sleep 1; print "ready\n"; sleep 1 while 1;
`;
