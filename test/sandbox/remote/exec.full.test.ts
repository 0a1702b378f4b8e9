// test/sandbox/remote/exec.full.test.ts: `ags exec` and `ags start` with a remote engine work as they do locally, and send it only the files
// that the sandbox may see.
import { execFileSync, type ChildProcess } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { endProcessesWith } from '../../attacks/host-view.ts';
import { echo, lastWord, REACHED } from '../../conformance/listeners.ts';
import { collect, createPlace, until } from '../../conformance/place.ts';
import { until as untilTrue } from '../../exec/given.ts';
import { createMachine, type Machine } from '../../harness.ts';
import { imageWithPerl, openRemote } from './remote-backend.ts';
import { HAS_REMOTE, startRemoteEngine, type RemoteEngine } from './remote-engine.ts';

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

if (HAS_REMOTE) {
  let remote: RemoteEngine;
  let image: string;
  beforeAll(async () => {
    remote = await startRemoteEngine();
    image = imageWithPerl(remote);
  }, SECONDS);
  afterAll(() => remote[Symbol.dispose]());
  const over = (...args: string[]): string[] => ['--backend', 'docker', '--image', image, ...args];
  /** Starts a command that has written a file and keeps running. */
  const startWork = async (
    machine: Machine,
  ): Promise<{ child: ChildProcess; heard: { stdout: string; stderr: string } }> => {
    const child = machine.start(
      ['exec', ...over('--review', 'later', '--', 'sh', '-c', 'echo kept > work.txt; echo up; sleep 600')],
      { env: remote.env },
    );
    const heard = { stdout: '', stderr: '' };
    for (const name of ['stdout', 'stderr'] as const)
      child[name]?.on('data', (chunk: Buffer) => (heard[name] += chunk.toString()));
    await untilTrue(() => heard.stdout.includes('up'));
    return { child, heard };
  };

  test(
    'a command has its streams, files and network; its changes come back, and nothing stays on the engine',
    async () => {
      using machine = machineWith('root');
      writeFileSync(join(machine.home, 'private'), `${CANARY}\n`);
      // Sends a request to the proxy and prints the answer.
      const ask = `use IO::Socket::INET; my $s = IO::Socket::INET->new(q(127.0.0.1:3128)) or die; print $s "CONNECT refused.test:443 HTTP/1.1\\r\\nHost: refused.test:443\\r\\n\\r\\n"; print scalar <$s>`;
      const script = [
        'cat; echo err >&2; cat uncommitted.txt; ls -a; cat /proc/net/dev | grep -c :',
        `perl -e '${ask}'`,
        'echo two > src/a.txt; rm src/gone.txt; mkdir deep; echo new > deep/n.txt; ln -s /etc/passwd deep/link; exit 7',
      ].join('\n');
      const run = await machine.ags(
        ['exec', ...over('--review', 'later', '--allow', 'allowed.test', '--', 'sh', '-c', script)],
        {
          env: remote.env,
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
      expect(remote.left()).toEqual([]);
      const review = await machine.ags(['review', '--accept-all'], { timeoutMs: SECONDS });
      expect(review.stderr).not.toContain('refused');
      expect([
        machine.read('src/a.txt'),
        machine.read('deep/n.txt'),
        machine.has('src/gone.txt'),
        machine.read('.env'),
      ]).toEqual(['two\n', 'new\n', false, `${CANARY}\n`]);
      const log = await machine.ags(['net', 'log'], { env: remote.env });
      expect(log.stdout).toContain('refused.test:443');
    },
    SECONDS,
  );

  test(
    'a killed ags leaves no container, no secret was on the engine, and changes come back with the next command',
    async () => {
      using machine = machineWith('root');
      const { child } = await startWork(machine);
      expect(
        remote
          .left()
          .flatMap((name) => /-(agent|net|relay)$/.exec(name)?.[1] ?? [])
          .toSorted(),
      ).toEqual(['agent', 'net', 'relay']);
      // Finding this file shows that a secret would be found.
      expect([remote.holds('not committed'), remote.holds(CANARY)]).toEqual([true, false]);
      child.kill('SIGKILL');
      await untilTrue(() => remote.left().length === 1);
      const [task = ''] = machine.tasks();
      // The volume belongs to a task, so no cleanup removes it: not the user's, not another user's, not one with another
      // state directory.
      using stranger = createMachine('user', { disk: true });
      const cleanup = (who: Machine, more: Record<string, string> = {}) =>
        who.ags(['cleanup', '--yes'], { env: { ...remote.env, ...more }, timeoutMs: SECONDS });
      const [volume = ''] = remote.left();
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
      expect(remote.left()).toEqual([volume]);
      const diff = await machine.ags(['diff', task], { timeoutMs: SECONDS });
      expect(diff.stdout).toContain('+kept');
      expect(remote.left()).toEqual([]);
    },
    SECONDS,
  );

  test(
    'a lost connection is reported, and the changes made by then are kept',
    async () => {
      using machine = machineWith('root');
      const { child, heard } = await startWork(machine);
      const ended = new Promise<number | null>((resolve) => child.on('close', resolve));
      const relay = remote.left().find((name) => name.endsWith('-relay'));
      endProcessesWith(`--name\0${relay}\0`);
      expect(await ended).toBe(137);
      expect(heard.stderr).toContain("the connection to the engine's machine was lost");
      const diff = await machine.ags(['diff', machine.tasks()[0] ?? ''], { timeoutMs: SECONDS });
      expect(diff.stdout).toContain('+kept');
      expect(remote.left()).toEqual([]);
    },
    SECONDS,
  );

  test(
    'an ordinary user reaches the engine by a context, and the work of an agent there is on its branch',
    async () => {
      using machine = machineWith('user');
      const docker = (...args: string[]): void =>
        void execFileSync('docker', args, {
          env: { ...machine.env, PATH: '/usr/bin:/bin' },
          uid: machine.uid,
          gid: machine.uid,
          stdio: 'pipe',
        });
      const at = (name: string): string => join(remote.env['DOCKER_CERT_PATH'] ?? '', name);
      mkdirSync(join(machine.home, '.docker'));
      machine.write('x', '');
      docker(
        'context',
        'create',
        'remote',
        '--docker',
        `host=${remote.address},ca=${at('ca.pem')},cert=${at('cert.pem')},key=${at('key.pem')}`,
      );
      docker('context', 'use', 'remote');
      const started = await machine.ags(
        ['start', 'there', 'Write it down', '--agent', 'sh -c "cat > goal.txt; echo done"', ...over()],
        { timeoutMs: SECONDS },
      );
      expect(started.stderr + started.stdout).toContain('on branch ags/there');
      expect(machine.git('show', 'ags/there:goal.txt')).toContain('Write it down');
      const shown = await machine.ags(['show', 'there']);
      expect(shown.stdout).toContain(`on ${remote.address}, seen from inside`);
      expect(remote.left()).toEqual([]);
    },
    SECONDS,
  );

  test(
    'listeners are served here, servers inside can be reached, and a listener can be opened while the sandbox runs',
    async () => {
      using place = await createPlace(
        openRemote(
          () => remote,
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
      expect(remote.left()).toEqual([]);
    },
    SECONDS,
  );

  test.each([
    ['without an image', [], /needs an image/],
    ['with a directory of this machine', ['--mount', '/usr/share'], /cannot have \/usr\/share of this machine/],
    ['with an overlay', ['--workspace', 'overlay'], /is not possible: the engine is on another machine/],
    ['with nested Docker', ['--docker'], /cannot have nested Docker/],
  ])('a sandbox that cannot run remotely is refused with the reason: %s', async (_what, flags, words) => {
    using machine = machineWith('root');
    const over_ = flags.length === 0 ? ['--backend', 'docker'] : over();
    const run = await machine.ags(['exec', ...over_, ...flags, '--', 'true'], { env: remote.env, timeoutMs: SECONDS });
    expect(run.code).not.toBe(0);
    expect(run.stderr).toMatch(words);
    expect(remote.left()).toEqual([]);
  });
} else test.skip('a second Docker daemon cannot be started here', () => undefined);
