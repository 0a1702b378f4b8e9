// test/attacks/descriptors.test.ts: descriptors from the caller's shell. A descriptor is a way out: /proc/self/fd opens the same file again,
// with rights that the caller did not give, and an open directory leads to everything below and above it.
// needs: sandbox
import { spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { AGS, CALLERS, createMachine, giveTo, type Machine } from '../harness.ts';
import { identity } from './run-inside.ts';

interface CallerFiles {
  readonly machine: Machine;
  readonly dir: string;
  /** Runs a command in the sandbox, started from a shell with these redirections. */
  shell(redirections: string, inside: string): { code: number | null; stdout: string; stderr: string };
  content(name: string): string;
}

function createCallerFiles(machine: Machine): CallerFiles {
  const dir = join(machine.home, 'files');
  mkdirSync(dir);
  // Writable for everyone: only the descriptor stands between the sandbox's user and these files.
  for (const name of ['input.txt', 'log.txt', 'secret.txt'])
    writeFileSync(join(dir, name), `${name} as it was\n`, { mode: 0o666 });
  giveTo(dir, machine.uid);
  spawnSync('chmod', ['-R', 'a+rwX', dir]);
  return {
    machine,
    dir,
    shell(redirections, inside) {
      const script = `cd "$1" && shift && exec "$0" "$@" ${redirections}`;
      const args = [
        '-c',
        script,
        process.execPath,
        dir,
        AGS,
        'exec',
        '--project',
        machine.project,
        '--review',
        'later',
        '--',
        'sh',
        '-c',
        inside,
      ];
      const { status, stdout, stderr } = spawnSync('bash', args, {
        cwd: machine.project,
        env: machine.env,
        ...identity(machine),
        encoding: 'utf8',
        timeout: 40_000,
      });
      return { code: status, stdout, stderr };
    },
    content: (name) => readFileSync(join(dir, name), 'utf8'),
  };
}

describe.each(CALLERS)('as %s', (caller) => {
  test('A7: a file that is the input can be read, and cannot be written through it', () => {
    using machine = createMachine(caller);
    const files = createCallerFiles(machine);
    const run = files.shell(
      '< input.txt',
      'cat; for fd in 0 1 2 3 4 5 6 7 8 9; do (echo breach > /proc/self/fd/$fd) 2>/dev/null; (echo breach >> /dev/fd/$fd) 2>/dev/null; done; : > /dev/stdin; exit 0',
    );
    expect(run.stdout).toContain('input.txt as it was\n');
    expect(files.content('input.txt')).toBe('input.txt as it was\n');
  });

  test('A7: a file that is the output can be appended to, and neither read nor emptied through it', () => {
    using machine = createMachine(caller);
    const files = createCallerFiles(machine);
    files.shell(
      '>> log.txt',
      // It is a pipe inside: a reader would wait for ever.
      'for program in cat tac; do timeout 1 $program /proc/self/fd/1 > stolen-$program.txt 2>/dev/null; done; : > /proc/self/fd/1; truncate -s 0 /proc/self/fd/1; cat stolen-*.txt >&2; echo added',
    );
    expect(files.content('log.txt')).toBe('log.txt as it was\nadded\n');
  });

  test('A7: a directory that is the input leads nowhere', () => {
    using machine = createMachine(caller);
    const files = createCallerFiles(machine);
    const before = readdirSync(files.dir);
    const run = files.shell(
      '< .',
      'cat /proc/self/fd/0/secret.txt; cat /proc/self/fd/0/../code/project/README.md; echo breach > /proc/self/fd/0/planted; cd -P /proc/self/fd/0 && ls',
    );
    expect(run.stdout).not.toContain('as it was');
    expect(run.stdout).not.toContain('# project');
    expect(readdirSync(files.dir)).toEqual(before);
  });

  test('A7: bytes pushed into the input from inside do not move the file back: a loop over it continues', () => {
    using machine = createMachine(caller);
    const files = createCallerFiles(machine);
    const list = join(files.dir, 'list.txt');
    writeFileSync(list, 'one\ntwo\nthree\n');
    const push = `open(my $w, '+<', '/proc/self/fd/0') or die; syswrite $w, 'x' x 6`;
    const loop = `n=0; while read -r line && [ $n -lt 9 ]; do n=$((n + 1)); echo "$line"; "$0" "$@"; done < ${list}`;
    const { stdout } = spawnSync(
      'bash',
      ['-c', loop, process.execPath, AGS, 'exec', '--review', 'later', '--', 'perl', '-e', push],
      { cwd: machine.project, env: machine.env, ...identity(machine), encoding: 'utf8', timeout: 50_000 },
    );
    expect(stdout).toBe('one\ntwo\nthree\n');
  });

  test('A7: a named pipe keeps its owner, and is written through a pipe without a name', () => {
    using machine = createMachine(caller);
    const files = createCallerFiles(machine);
    const fifo = join(files.dir, 'fifo');
    spawnSync('mkfifo', ['-m', '600', fifo], identity(machine));
    const { stdout } = spawnSync(
      'bash',
      [
        '-c',
        `cat ${fifo} & "$0" "$@" > ${fifo}; wait; stat -c '%a %u' ${fifo}`,
        process.execPath,
        AGS,
        'exec',
        '--',
        'echo',
        'through',
      ],
      { cwd: machine.project, env: machine.env, ...identity(machine), encoding: 'utf8', timeout: 40_000 },
    );
    expect(stdout).toBe(`through\n600 ${machine.uid}\n`);
  });

  test('A149: an input that never comes does not keep ags after the command has ended', () => {
    using machine = createMachine(caller);
    const files = createCallerFiles(machine);
    const fifo = join(files.dir, 'silent');
    spawnSync('mkfifo', ['-m', '600', fifo], identity(machine));
    const { stdout } = spawnSync(
      'bash',
      [
        '-c',
        `sleep 50 > ${fifo} & timeout -s KILL 30 "$0" "$@" < ${fifo}; echo $?; kill %1`,
        process.execPath,
        AGS,
        'exec',
        '--',
        'true',
      ],
      { cwd: machine.project, env: machine.env, ...identity(machine), encoding: 'utf8', timeout: 55_000 },
    );
    expect(stdout).toBe('0\n');
  });

  test('output that could not be written is a failure', () => {
    using machine = createMachine(caller);
    const files = createCallerFiles(machine);
    expect(files.shell('1< input.txt', 'echo lost')).toMatchObject({
      code: 1,
      stderr: 'ags: the output could not be written: Bad file descriptor\n',
    });
  });

  test('A7: no other descriptor is passed on, of any kind', () => {
    using machine = createMachine(caller);
    const files = createCallerFiles(machine);
    const before = readdirSync(files.dir);
    const run = files.shell(
      '3< secret.txt 4<> input.txt 5< . 6>> log.txt 9< / 37< secret.txt',
      'for fd in 3 4 5 6 7 8 9 37; do [ -e /proc/self/fd/$fd ] && readlink /proc/self/fd/$fd; done; cat <&3; cat /proc/self/fd/5/secret.txt; echo breach > /proc/self/fd/5/planted; echo breach >&4; cat /proc/1/fd/*/secret.txt; exit 0',
    );
    expect(run.stdout).toBe('');
    expect([files.content('input.txt'), files.content('log.txt'), readdirSync(files.dir)]).toEqual([
      'input.txt as it was\n',
      'log.txt as it was\n',
      before,
    ]);
  });
});
