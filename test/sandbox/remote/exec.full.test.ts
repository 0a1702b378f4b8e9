// test/sandbox/remote/exec.full.test.ts: `ags exec` and `ags start` with an engine on another machine: everything is as it is here, and nothing of anybody's gets there
// that the sandbox was not to see.
import { execFileSync, type ChildProcess } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { endProcessesWith } from '../../attacks/host-view.ts';
import { echo, lastWord, REACHED } from '../../conformance/listeners.ts';
import { collect, createPlace, until } from '../../conformance/place.ts';
import { until as untilTrue } from '../../exec/given.ts';
import { createMachine, type Machine } from '../../harness.ts';
import { imageWithPerl, openFar } from './remote-backend.ts';
import { HAS_FAR, startFarEngine, type FarEngine } from './remote-engine.ts';

const CANARY = 'CANARY-of-the-user';
const SECONDS = 120_000;

function machineWith(caller: 'root' | 'user'): Machine {
  const machine = createMachine(caller, {
    disk: true,
    files: { 'README.md': '# project\n', 'src/a.txt': 'one\n', 'src/gone.txt': 'x\n', '.gitignore': '.env\n' },
  });
  machine.write('.env', `${CANARY}\n`);
  machine.write('uncommitted.txt', 'not committed\n');
  return machine;
}

if (HAS_FAR) {
  let far: FarEngine;
  let image: string;
  beforeAll(async () => {
    far = await startFarEngine();
    image = imageWithPerl(far);
  }, SECONDS);
  afterAll(() => far[Symbol.dispose]());
  const over = (...args: string[]): string[] => ['--backend', 'docker', '--image', image, ...args];
  /** Has written, and goes on. */
  const startWork = async (
    machine: Machine,
  ): Promise<{ child: ChildProcess; heard: { stdout: string; stderr: string } }> => {
    const child = machine.start(
      ['exec', ...over('--review', 'later', '--', 'sh', '-c', 'echo kept > work.txt; echo up; sleep 600')],
      { env: far.env },
    );
    const heard = { stdout: '', stderr: '' };
    for (const name of ['stdout', 'stderr'] as const)
      child[name]?.on('data', (chunk: Buffer) => (heard[name] += chunk.toString()));
    await untilTrue(() => heard.stdout.includes('up'));
    return { child, heard };
  };

  test(
    'a command has its streams, its files and its network; what it changed comes back, and nothing stays there',
    async () => {
      using machine = machineWith('root');
      writeFileSync(join(machine.home, 'private'), `${CANARY}\n`);
      // Talks to the proxy, and says what it was told.
      const ask = `use IO::Socket::INET; my $s = IO::Socket::INET->new(q(127.0.0.1:3128)) or die; print $s "CONNECT refused.test:443 HTTP/1.1\\r\\nHost: refused.test:443\\r\\n\\r\\n"; print scalar <$s>`;
      const script = [
        'cat; echo err >&2; cat uncommitted.txt; ls -a; cat /proc/net/dev | grep -c :',
        `perl -e '${ask}'`,
        'echo two > src/a.txt; rm src/gone.txt; mkdir deep; echo new > deep/n.txt; ln -s /etc/passwd deep/link; exit 7',
      ].join('\n');
      const run = await machine.ags(
        ['exec', ...over('--review', 'later', '--allow', 'allowed.test', '--', 'sh', '-c', script)],
        {
          env: far.env,
          input: 'from here\n',
          timeoutMs: SECONDS,
        },
      );
      expect({ code: run.code, stdout: run.stdout.replace(/\(.*/s, '') }).toEqual({
        code: 7,
        stdout:
          'from here\nnot committed\n.\n..\n.git\n.gitignore\nREADME.md\nsrc\nuncommitted.txt\n1\nHTTP/1.1 403 ags: refused.test:443 is not allowed by the network policy of this sandbox ',
      });
      expect(run.stderr).toContain('err\n');
      expect(run.stderr).toContain('Network: refused refused.test');
      expect(far.left()).toEqual([]);
      const review = await machine.ags(['review', '--accept-all'], { timeoutMs: SECONDS });
      expect(review.stderr).not.toContain('refused');
      expect([
        machine.read('src/a.txt'),
        machine.read('deep/n.txt'),
        machine.has('src/gone.txt'),
        machine.read('.env'),
      ]).toEqual(['two\n', 'new\n', false, `${CANARY}\n`]);
      const log = await machine.ags(['net', 'log'], { env: far.env });
      expect(log.stdout).toContain('refused.test:443');
    },
    SECONDS,
  );

  test(
    'whoever is killed leaves no container, and no secret was there; what was written comes with the next look',
    async () => {
      using machine = machineWith('root');
      const { child } = await startWork(machine);
      expect(
        far
          .left()
          .flatMap((name) => /-(agent|net|relay)$/.exec(name)?.[1] ?? [])
          .toSorted(),
      ).toEqual(['agent', 'net', 'relay']);
      // The file is there, so a secret would have been found.
      expect([far.holds('not committed'), far.holds(CANARY)]).toEqual([true, false]);
      child.kill('SIGKILL');
      await untilTrue(() => far.left().length === 1);
      const [task = ''] = machine.tasks();
      // What a task waits for is no leftover, least of all for whoever does not know the task: another user of this machine, or the same with
      // another state directory.
      using stranger = createMachine('user', { disk: true });
      const cleanup = (who: Machine, more: Record<string, string> = {}) =>
        who.ags(['cleanup', '--yes'], { env: { ...far.env, ...more }, timeoutMs: SECONDS });
      const [volume = ''] = far.left();
      const cleanups = [
        await cleanup(machine),
        await cleanup(stranger),
        await cleanup(machine, { XDG_STATE_HOME: join(machine.root, 'elsewhere') }),
      ];
      expect(cleanups.map(({ code, stdout }) => [code, stdout.includes(volume)])).toEqual([
        [0, false],
        [0, false],
        [0, false],
      ]);
      expect(far.left()).toEqual([volume]);
      const diff = await machine.ags(['diff', task], { timeoutMs: SECONDS });
      expect(diff.stdout).toContain('+kept');
      expect(far.left()).toEqual([]);
    },
    SECONDS,
  );

  test(
    'a connection that is lost is told, and what was written by then is there',
    async () => {
      using machine = machineWith('root');
      const { child, heard } = await startWork(machine);
      const ended = new Promise<number | null>((resolve) => child.on('close', resolve));
      const relay = far.left().find((name) => name.endsWith('-relay'));
      endProcessesWith(`--name\0${relay}\0`);
      expect(await ended).toBe(137);
      expect(heard.stderr).toContain("the connection to the engine's machine was lost");
      const diff = await machine.ags(['diff', machine.tasks()[0] ?? ''], { timeoutMs: SECONDS });
      expect(diff.stdout).toContain('+kept');
      expect(far.left()).toEqual([]);
    },
    SECONDS,
  );

  test(
    'an ordinary user finds it by a context, and an agent works there: its commits are on its branch',
    async () => {
      using machine = machineWith('user');
      const docker = (...args: string[]): void =>
        void execFileSync('docker', args, {
          env: { ...machine.env, PATH: '/usr/bin:/bin' },
          uid: machine.uid,
          gid: machine.uid,
          stdio: 'pipe',
        });
      const at = (name: string): string => join(far.env['DOCKER_CERT_PATH'] ?? '', name);
      mkdirSync(join(machine.home, '.docker'));
      machine.write('x', '');
      docker(
        'context',
        'create',
        'far',
        '--docker',
        `host=${far.address},ca=${at('ca.pem')},cert=${at('cert.pem')},key=${at('key.pem')}`,
      );
      docker('context', 'use', 'far');
      const started = await machine.ags(
        ['start', 'there', 'Write it down', '--agent', 'sh -c "cat > goal.txt; echo done"', ...over()],
        { timeoutMs: SECONDS },
      );
      expect(started.stderr + started.stdout).toContain('on branch ags/there');
      expect(machine.git('show', 'ags/there:goal.txt')).toContain('Write it down');
      const shown = await machine.ags(['show', 'there']);
      expect(shown.stdout).toContain(`on ${far.address}, seen from inside`);
      expect(far.left()).toEqual([]);
    },
    SECONDS,
  );

  test(
    'doors lead here, servers inside can be reached, and a door can be opened while it runs',
    async () => {
      using place = await createPlace(
        openFar(
          () => far,
          () => image,
        ),
      );
      const script = `use Socket; $| = 1;
      sub talk { my ($at, $port, $word) = @_; socket(my $s, PF_INET, SOCK_STREAM, 0); connect($s, pack_sockaddr_in($port, inet_aton($at))) or return "$!"; syswrite $s, $word; shutdown $s, 1; local $/; <$s> }
      print talk('127.0.0.1', 3128, 'a'), "\\n", talk('127.64.0.9', 443, 'b'), "\\n", talk('192.0.2.1', 443, 'c'), "\\n";
      socket(my $u, PF_INET, SOCK_DGRAM, 0); connect($u, pack_sockaddr_in(53, inet_aton('127.0.0.1'))); send($u, 'd', 0); recv($u, my $answer, 99, 0); print "$answer\\n";
      socket(my $l, PF_INET, SOCK_STREAM, 0); bind($l, pack_sockaddr_in(8080, INADDR_LOOPBACK)); listen $l, 9; print "serving\\n";
      accept(my $c, $l); sysread $c, my $said, 99; syswrite $c, "you said $said"; close $c;
      <STDIN>; print talk('127.0.0.1', 8091, 'late'), "\\n";`;
      const sandbox = await place.start(['perl', '-e', script], {
        spec: place.spec([], { network: REACHED }),
        onListener: echo,
      });
      const said = collect(sandbox.stdout);
      await until(sandbox, 'serving');
      const socket = await sandbox.connect(8080);
      socket.write('hello');
      const answer = await lastWord(socket);
      await expect(sandbox.connect(8081)).rejects.toMatchObject({ code: 'backend.failed' });
      await expect(sandbox.open(3128)).rejects.toMatchObject({ code: 'backend.failed' });
      echo('late', await sandbox.open(8091));
      sandbox.stdin?.end('\n');
      expect({ answer, code: await sandbox.done, said: (await said).toString() }).toEqual({
        answer: 'you said hello',
        code: 0,
        said: 'proxy heard a\ntls heard b\nNetwork is unreachable\nnames heard d\nserving\nlate heard late\n',
      });
      await expect(sandbox.connect(8080)).rejects.toMatchObject({ code: 'backend.failed' });
      expect(far.left()).toEqual([]);
    },
    SECONDS,
  );

  test.each([
    ['without an image', [], /needs an image/],
    ['with a directory of this machine', ['--mount', '/usr/share'], /cannot have \/usr\/share of this machine/],
    ['with an overlay', ['--workspace', 'overlay'], /is not possible: the engine is on another machine/],
    ['with an engine inside', ['--docker'], /cannot have nested Docker/],
  ])('what cannot be there is refused in words: %s', async (_what, flags, words) => {
    using machine = machineWith('root');
    const over_ = flags.length === 0 ? ['--backend', 'docker'] : over();
    const run = await machine.ags(['exec', ...over_, ...flags, '--', 'true'], { env: far.env, timeoutMs: SECONDS });
    expect(run.code).not.toBe(0);
    expect(run.stderr).toMatch(words);
    expect(far.left()).toEqual([]);
  });
} else test.skip('no second engine can be started here', () => undefined);
