// test/conformance/processes.ts: start, streams, signals and end of a sandboxed command.
import { randomBytes } from 'node:crypto';
import { closeSync, existsSync, mkdtempSync, openSync, readdirSync, readFileSync, readlinkSync, rmSync } from 'node:fs';
import { constants } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { AgsError } from '../../src/protocol/errors.ts';
import { hostPath, sandboxPath } from '../../src/protocol/spec.ts';
import { startAgain } from './again.ts';
import {
  bind,
  createPlace,
  ended,
  file,
  INHERITED,
  leftOf,
  OTHER_DESCRIPTORS,
  overlay,
  processesNamed,
  RUNNER,
  until,
  type Open,
  type Place,
} from './place.ts';

export function processPromises(open: Open): void {
  describe('input, output and exit code', () => {
    test('stdin, stdout and stderr pass every byte unchanged', async () => {
      using place = await createPlace(open);
      const input = randomBytes(300_000);
      const result = await place.runRaw(
        [
          'perl',
          '-e',
          'binmode $_ for STDIN, STDOUT, STDERR; local $/; my $all = <STDIN>; print $all; print STDERR $all',
        ],
        { input },
      );
      expect({ code: result.code, stdout: result.stdout.equals(input), stderr: result.stderr.equals(input) }).toEqual({
        code: 0,
        stdout: true,
        stderr: true,
      });
    });

    test('the command gets the given file descriptors and no others', async () => {
      using place = await createPlace(open);
      const [from, to] = [join(place.root, 'in'), join(place.root, 'out')];
      place.write('../in', 'from a file\n');
      const stdin = openSync(from, 'r');
      const stdout = openSync(to, 'w');
      const sandbox = await place.start(['sh', '-c', 'cat; echo problem >&2; exec "$@"', 'sh', ...OTHER_DESCRIPTORS], {
        stdio: { stdin, stdout, stderr: stdout },
      });
      for (const fd of [stdin, stdout]) closeSync(fd);
      expect(await ended(sandbox)).toBe(0);
      expect([sandbox.stdin, sandbox.stdout, sandbox.stderr]).toEqual([null, null, null]);
      const [first, second, ...others] = readFileSync(to, 'utf8').trim().split('\n');
      expect([first, second, others.filter((row) => !INHERITED.includes(row.split(' ')[0] ?? ''))]).toEqual([
        'from a file',
        'problem',
        [],
      ]);
    });

    test('ignored input ends at once', async () => {
      using place = await createPlace(open);
      const sandbox = await place.start(['sh', '-c', 'cat && exit 5'], { stdio: { stdin: 'ignore' } });
      sandbox.stdout?.resume();
      sandbox.stderr?.resume();
      expect(await ended(sandbox)).toBe(5);
    });

    test('arguments arrive unchanged', async () => {
      using place = await createPlace(open);
      const odd = [
        '',
        ' ',
        '-x',
        '--',
        'a b',
        "it's",
        '"',
        '$HOME',
        '`id`',
        '\\',
        'new\nline',
        '*',
        'größe',
        '\u001b[2J',
        '--args',
        '3',
      ];
      const { code, stdout } = await place.run(['perl', '-e', 'print join "\\0", @ARGV', '--', ...odd]);
      expect({ code, args: stdout.split('\0') }).toEqual({ code: 0, args: odd });
    });

    test('the exit code is the command’s, 128 + n after signal n, and 127 or 126 as in a shell', async () => {
      using place = await createPlace(open);
      const codes: Record<string, number> = {};
      const commands = {
        ...Object.fromEntries([0, 1, 42, 124, 255].map((code) => [`exit ${code}`, ['sh', '-c', `exit ${code}`]])),
        ...Object.fromEntries(
          ['HUP', 'INT', 'KILL', 'SEGV', 'PIPE', 'TERM', 'USR1'].map((name) => [
            name,
            ['sh', '-c', `kill -${name} $$; sleep 9`],
          ]),
        ),
        'not there': ['/no/such/program'],
        'not executable': ['/etc/alternatives'],
      };
      for (const [name, command] of Object.entries(commands)) codes[name] = (await place.run(command)).code;
      expect(codes).toEqual({
        'exit 0': 0,
        'exit 1': 1,
        'exit 42': 42,
        'exit 124': 124,
        'exit 255': 255,
        HUP: 129,
        INT: 130,
        KILL: 137,
        SEGV: 139,
        PIPE: 141,
        TERM: 143,
        USR1: 138,
        'not there': 127,
        'not executable': 126,
      });
    });
  });

  describe('signals and ends', () => {
    test.each(['SIGTERM', 'SIGHUP', 'SIGINT', 'SIGQUIT', 'SIGUSR1', 'SIGUSR2', 'SIGWINCH'] as const)(
      '%s reaches the command, which may answer as it likes',
      async (name) => {
        using place = await createPlace(open);
        const sandbox = await place.start([
          'perl',
          '-e',
          `$| = 1; $SIG{${name.slice(3)}} = sub { exit 33 }; print "ready\\n"; sleep 60`,
        ]);
        await until(sandbox, 'ready');
        sandbox.signal(name);
        expect(await ended(sandbox)).toBe(33);
      },
    );

    test('a signal without a handler ends the command', async () => {
      using place = await createPlace(open);
      for (const name of ['SIGTERM', 'SIGINT', 'SIGKILL'] as const) {
        const sandbox = await place.start(['sh', '-c', 'echo ready; exec sleep 60']);
        await until(sandbox, 'ready');
        sandbox.signal(name);
        expect([name, await ended(sandbox)]).toEqual([name, 128 + constants.signals[name]]);
      }
    });

    test('SIGINT reaches the whole foreground job, SIGTERM only the command', async () => {
      using place = await createPlace(open);
      // Without job control, as in a script, the child is in the command's process group.
      const script =
        '$| = 1; my $child = fork // die; if (!$child) { $SIG{INT} = $SIG{TERM} = sub { syswrite STDOUT, "child\\n" }; sleep 60 while 1 } $SIG{INT} = sub { print "parent\\n" }; $SIG{TERM} = sub { print "parent\\n"; sleep 1; kill KILL => $child; exit 3 }; sleep 1; print "ready\\n"; sleep 60 while 1';
      const sandbox = await place.start(['perl', '-e', script]);
      let said = '';
      sandbox.stdout?.on('data', (chunk: Buffer) => (said += chunk.toString('utf8')));
      await until(sandbox, 'ready');
      const answers = (): string[] =>
        said
          .split('\n')
          .toSorted()
          .filter((line) => line !== '' && line !== 'ready');
      sandbox.signal('SIGINT');
      await expect.poll(answers).toEqual(['child', 'parent']);
      sandbox.signal('SIGTERM');
      expect(await ended(sandbox)).toBe(3);
      expect(answers().filter((line) => line === 'child')).toHaveLength(1);
    });

    // Processes that ignore every signal and have left their session and parent; one of them is stopped.
    const stubborn = (word: string): string[] => [
      'perl',
      '-e',
      `$| = 1; $SIG{$_} = 'IGNORE' for qw(HUP INT QUIT TERM USR1); use POSIX; for (1 .. 3) { next if fork; POSIX::setsid(); exit if fork; kill STOP => $$ if $_ == 2; exec 'sleep', '${word}' } sleep 1; print "ready\\n"; sleep 600`,
    ];
    // A duration for `sleep` that identifies the process by its command line.
    const uniqueWord = (): string => `600.${Date.now()}${Math.floor(Math.random() * 1e6)}`;

    test('kill() ends every process, even those that ignore signals', async () => {
      using place = await createPlace(open);
      const word = uniqueWord();
      const sandbox = await place.start(stubborn(word));
      await until(sandbox, 'ready');
      expect(processesNamed(word).length).toBeGreaterThanOrEqual(4);
      sandbox.kill();
      expect(await ended(sandbox)).toBe(137);
      expect(processesNamed(word)).toEqual([]);
      // Both are harmless after the end.
      sandbox.kill();
      sandbox.signal('SIGTERM');
    });

    test('kill() and signals work from the very first moment', async () => {
      using place = await createPlace(open);
      for (let i = 0; i < 6; i++) {
        const word = uniqueWord();
        const sandbox = await place.start(['sleep', word]);
        for (const stream of [sandbox.stdout, sandbox.stderr]) stream?.resume();
        if (i % 2 === 0) sandbox.kill();
        else sandbox.signal('SIGTERM');
        expect([await ended(sandbox), processesNamed(word)]).toEqual([i % 2 === 0 ? 137 : 143, []]);
      }
    });

    test('background processes end with the command, before the sandbox reports its end', async () => {
      using place = await createPlace(open);
      const out = openSync('/dev/null', 'w');
      for (let i = 0; i < 10; i++) {
        const word = uniqueWord();
        // Without pipes, which a background process could hold open, only the wait for processes can delay the end.
        const sandbox = await place.start(['sh', '-c', `setsid sleep ${word} & setsid sleep ${word} & exit 4`], {
          stdio: { stdin: 'ignore', stdout: out, stderr: out },
        });
        expect(await ended(sandbox)).toBe(4);
        expect(processesNamed(word)).toEqual([]);
      }
      closeSync(out);
    });

    test('the sandbox of a killed runner ends', async () => {
      const word = uniqueWord();
      const directory = mkdtempSync(`${open.base ?? '/tmp'}/ags-runner-`);
      const said = join(directory, 'pid');
      const runner = (): number => (existsSync(said) ? Number(readFileSync(said, 'utf8')) : 0);
      const child = startAgain({
        file: String(expect.getState().testPath),
        uid: null,
        env: { [RUNNER.word]: word, [RUNNER.directory]: directory },
      });
      for (const stream of [child.stdout, child.stderr]) stream?.resume();
      try {
        await expect.poll(runner, { timeout: 30_000 }).toBeGreaterThan(0);
        await expect.poll(() => processesNamed(word).length, { timeout: 30_000 }).toBeGreaterThanOrEqual(2);
        process.kill(runner(), 'SIGKILL');
        expect(await leftOf(word)).toEqual([]);
      } finally {
        child.kill('SIGKILL');
        rmSync(directory, { recursive: true, force: true });
      }
    });
  });

  describe('an impossible sandbox', () => {
    const missing = hostPath('/nonexistent/source');
    const impossible: readonly (readonly [string, (place: Place) => ReturnType<Place['spec']>])[] = [
      ['with a missing source', (place) => place.spec([bind(missing, '/data')])],
      ['with a missing writable source', (place) => place.spec([bind(missing, '/data', true)])],
      [
        'with a missing project',
        (place) =>
          place.spec([
            {
              kind: 'workspace',
              workspace: {
                kind: 'overlay',
                layers: [{ path: missing, identity: '0,0' }],
                hidden: [],
                upper: hostPath(place.writable('upper')),
                work: hostPath(place.writable('work')),
              },
              to: sandboxPath('/project'),
              why: 'test',
            },
          ]),
      ],
      ['with a missing working directory', (place) => place.spec([], { workdir: sandboxPath('/no/such/directory') })],
      [
        'with a mount point below a file',
        (place) => place.spec([file('/etc/name', 'x'), bind('/usr', '/etc/name/usr')]),
      ],
      ['with a mount point in a read-only tree', (place) => place.spec([bind('/usr', '/usr/no/such/place')])],
    ];

    test.each(impossible)(
      '%s is refused with a reason, never runs its command, and leaves nothing behind',
      async (_name, make) => {
        using place = await createPlace(open);
        const proof = place.writable('proof');
        const word = `600.${Date.now()}9`;
        const spec = make(place);
        const refusal = await place
          .run(['sh', '-c', `touch /proof/ran; sleep ${word}`], {
            spec: { ...spec, mounts: [...spec.mounts, bind(proof, '/proof', true)] },
          })
          .then(
            (outcome) => outcome,
            (error: unknown) => error,
          );
        expect(refusal).toBeInstanceOf(AgsError);
        expect((refusal as AgsError).code).toMatch(/^backend\./);
        expect({
          ran: readdirSync(proof),
          processes: await leftOf(word),
          mounts: readFileSync('/proc/self/mountinfo', 'utf8').includes(place.root),
        }).toEqual({ ran: [], processes: [], mounts: false });
        expect(await place.run(['echo', 'still works'])).toEqual({ code: 0, stdout: 'still works\n', stderr: '' });
      },
    );

    test('with a command line longer than the kernel allows is refused', async () => {
      using place = await createPlace(open);
      const refusal: unknown = await place.run(['true', 'x'.repeat(3_000_000)]).catch((error: unknown) => error);
      expect(refusal).toBeInstanceOf(AgsError);
    });
  });

  describe('several at once', () => {
    test('two sandboxes with the same spec cannot see each other', async () => {
      using one = await createPlace(open);
      using two = await createPlace(open);
      const spec = one.spec();
      const script = 'echo mine > /tmp/f; echo ready; read go; cat /tmp/f /tmp/other 2>&1; echo /proc/[0-9]*';
      const sandboxes = await Promise.all([one, two].map((place) => place.start(['sh', '-c', script], { spec })));
      const said = ['', ''];
      sandboxes.forEach((sandbox, i) =>
        sandbox.stdout?.on('data', (chunk: Buffer) => (said[i] += chunk.toString('utf8'))),
      );
      await Promise.all(sandboxes.map((sandbox) => until(sandbox, 'ready')));
      for (const sandbox of sandboxes) sandbox.stdin?.end('go\n');
      expect(await Promise.all(sandboxes.map((sandbox) => ended(sandbox)))).toEqual([0, 0]);
      for (const text of said)
        expect(text.replaceAll(/ \/proc\/\d+/g, '')).toBe(
          'ready\nmine\ncat: /tmp/other: No such file or directory\n/proc/1\n',
        );
    });

    test('twenty start in parallel, each with its own project', async () => {
      const places = await Promise.all(Array.from({ length: 20 }, () => createPlace(open)));
      try {
        const outcomes = await Promise.all(
          places.map(async (place, i) => {
            place.write('number', `${i}\n`);
            return place.run(['sh', '-c', 'cat number; echo changed > number; cat number'], {
              spec: place.spec([overlay(place)], { workdir: sandboxPath('/project') }),
            });
          }),
        );
        expect(outcomes).toEqual(places.map((_, i) => ({ code: 0, stdout: `${i}\nchanged\n`, stderr: '' })));
        expect(places.map((place) => readFileSync(join(place.project, 'number'), 'utf8'))).toEqual(
          places.map((_, i) => `${i}\n`),
        );
      } finally {
        for (const place of places) place[Symbol.dispose]();
      }
    });

    test('a dozen runs leak no descriptor of the caller', async () => {
      using place = await createPlace(open);
      const descriptors = (): string[] =>
        readdirSync('/proc/self/fd')
          .flatMap((fd) => {
            try {
              return [readlinkSync(`/proc/self/fd/${fd}`).replace(/:\[\d+\]$/, '')];
            } catch {
              return [];
            }
          })
          .toSorted();
      await place.run(['true']);
      const before = descriptors();
      for (let i = 0; i < 12; i++)
        await (i % 3 === 2
          ? place.run(['true'], { spec: place.spec([bind('/nonexistent/source', '/data')]) }).catch(() => undefined)
          : place.run(['cat'], { input: 'x' }));
      await sleep(50);
      expect(descriptors()).toEqual(before);
    });
  });
}
