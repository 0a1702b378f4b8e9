// test/sandbox/remote/tasks.full.test.ts: work with an agent during and after its run on a remote engine.
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { machineMark } from '../../../src/sandbox/engine/owner.ts';
import { createWorld, ORIGIN } from '../../gateway/fixture.ts';
import { given, until } from '../../exec/given.ts';
import { createMachine } from '../../harness.ts';
import { enter, leaveAndComeBack } from '../../agent-run/guest.ts';
import { createAgentMachine } from '../../agent-run/place.ts';
import { imageWithPerl } from './remote-backend.ts';
import { HAS_REMOTE, freePort, startRemoteEngine, type RemoteEngine } from './remote-engine.ts';
import { HAS_SSH, agsArgv, startSsh, withKey } from './remote-ssh.ts';

const SECONDS = 120_000;
const SECRET = 's3cr3t-value-of-the-user';

if (HAS_REMOTE) {
  let remote: RemoteEngine;
  let image: string;
  beforeAll(async () => {
    remote = await startRemoteEngine();
    image = imageWithPerl(remote);
  }, SECONDS);
  afterAll(() => remote[Symbol.dispose]());
  const over = (): string[] => ['--backend', 'docker', '--image', image];

  test(
    'a user enters the sandbox of an agent, stops it and continues it with a message; checks run remotely, over the image of the task',
    async () => {
      using machine = createAgentMachine('user', {
        'a.txt': 'a\n',
        'ags.yaml': 'checks:\n  - cat a.txt; ! test -e /usr; hostname\n',
      });
      const ags = (...args: string[]) => machine.ags(args, { env: remote.env, timeoutMs: SECONDS });
      await ags('start', 'work', 'append: a.txt one // say: here // wait: 600', '-a', 'demo', '-d', ...over());
      await machine.event('work', 'agent.said');
      const guest = await enter(machine, 'work', { do: 'shell', argv: ['sh'] });
      guest.type('cat a.txt; touch mine.txt; echo "caps $(grep -c "^CapEff:.0000000000000000$" /proc/self/status)"\n');
      expect(await guest.sees('caps 1')).toContain('one');
      guest.resize(100, 30);
      guest.type('busybox stty size; exit 3\n');
      await guest.sees('30 100');
      expect(await guest.exitCode).toBe(3);
      await ags('stop', 'work');
      const { session } = await machine.until('work', ['stopped']);
      expect((await ags('send', 'work', 'append: a.txt two')).stderr).toContain('work continues with it');
      expect(await machine.until('work', ['ready', 'failed'])).toMatchObject({ state: 'ready', turns: 2, session });
      expect(machine.git('show', 'ags/work:a.txt')).toBe('a\none\ntwo\n');
      expect(machine.branch('work')).toContain('mine.txt');
      const check = await ags('check', 'work');
      expect({ code: check.code, said: check.stdout.split('\n').slice(0, 4) }, check.stderr).toEqual({
        code: 0,
        said: ['a', 'one', 'two', 'sandbox'],
      });
      expect(remote.left()).toEqual([]);
    },
    SECONDS,
  );

  test(
    'restart, fork and resolve run remotely, over the same image',
    async () => {
      using machine = createAgentMachine('user', { 'a.txt': 'a\n' });
      const ags = (...args: string[]) => machine.ags(args, { env: remote.env, timeoutMs: SECONDS });
      const here = (task: string): unknown => machine.run(task).image;
      await ags('start', 'work', 'append: a.txt one', '-a', 'demo', ...over());
      expect(await machine.until('work', ['ready', 'failed'])).toMatchObject({ state: 'ready' });
      const again = await ags('restart', 'work');
      expect(again, again.stderr).toMatchObject({ code: 0 });
      expect(await machine.until('work', ['ready', 'failed'])).toMatchObject({ state: 'ready', turns: 1 });
      const forked = await ags('fork', 'work', 'append: a.txt two', '--name', 'other');
      expect(forked, forked.stderr).toMatchObject({ code: 0 });
      await machine.until('other', ['ready', 'failed']);
      expect(machine.git('show', 'ags/other:a.txt')).toBe('a\none\ntwo\n');
      machine.write('a.txt', 'mine\n');
      machine.git('commit', '-qam', 'mine');
      const resolving = await ags('resolve', 'work');
      expect(resolving, resolving.stderr).toMatchObject({ code: 0 });
      const both = machine.tasks().find((name) => name !== 'work' && name !== 'other') ?? '';
      await machine.until(both, ['ready', 'no-changes', 'failed']);
      expect([here('other'), here(both)]).toEqual([here('work'), here('work')]);
      expect(remote.left()).toEqual([]);
    },
    SECONDS,
  );

  test(
    'the terminal of a remote agent can be detached and attached again',
    async () => {
      using machine = createAgentMachine('root');
      const started = await machine.ags(['start', 'term', 'write: b.txt x', '-a', 'demo', '-i', ...over()], {
        env: remote.env,
      });
      expect(started.stderr).toContain('ags attach term');
      await machine.event('term', 'run.started');
      await leaveAndComeBack(machine, 'term');
      expect((await machine.until('term', ['ready', 'failed'])).state).toBe('ready');
      expect(machine.branch('term')).toEqual(expect.arrayContaining(['b.txt', 'by-hand']));
    },
    SECONDS,
  );

  test(
    'a remote server is published here, asks are answered here, and secrets are inserted here: the engine sees a placeholder',
    async () => {
      await using context = await createWorld();
      const requests: string[] = [];
      await context.tls(443, (socket) => {
        socket.once('data', (chunk: Buffer) => {
          requests.push(chunk.toString('latin1'));
          socket.end('HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello');
        });
      });
      for (const name of ['asked.test', 'api.test']) context.names.set(name, [ORIGIN]);
      using machine = createMachine('user', { disk: true });
      machine.write('../ca.pem', context.authority.certificatePem);
      machine.write(
        '../../.config/ags/config.yaml',
        `network:\n  dns: ["${context.dns}"]\n  addresses: ["${ORIGIN}/32"]\nsecrets:\n  - { name: api, host: api.test, header: authorization, send: "Bearer {}", env: API_TOKEN, endpoint: API_URL, from: { env: REAL_TOKEN } }\n`,
      );
      const script = `use IO::Socket::INET; $| = 1;
        my $s = IO::Socket::INET->new('127.0.0.1:3128'); print $s "CONNECT asked.test:443 HTTP/1.1\\r\\nHost: asked.test:443\\r\\n\\r\\n"; print scalar <$s>;
        my ($at, $path) = $ENV{API_URL} =~ m{//([^/]+)(.*)}; $s = IO::Socket::INET->new($at); print $s "GET $path/v1 HTTP/1.1\\r\\nHost: $at\\r\\nAuthorization: Bearer $ENV{API_TOKEN}\\r\\nConnection: close\\r\\n\\r\\n"; print scalar <$s>;
        my $l = IO::Socket::INET->new(LocalAddr => '127.0.0.1:8080', Listen => 9); print "serving\\n";
        while (my $c = $l->accept) { sysread $c, my $asked, 999; print $c "HTTP/1.0 200 OK\\r\\nContent-Length: 11\\r\\n\\r\\nfrom inside"; close $c }`;
      // Writes the variables that it sees to a file on the engine, where holds() would find the secret.
      const look = 'cat /proc/*/environ /proc/*/cmdline > seen.txt 2>/dev/null; exec perl -e "$0"';
      const port = await freePort();
      const env = { ...remote.env, REAL_TOKEN: SECRET, NODE_EXTRA_CA_CERTS: join(machine.project, '../ca.pem') };
      const flags = ['--review', 'later', '--network', 'record', '--publish', `${port}:8080`];
      const child = machine.start(['exec', ...over(), ...flags, '--', 'sh', '-c', look, script], { env });
      let said = '';
      for (const stream of [child.stdout, child.stderr])
        stream?.on('data', (chunk: Buffer) => (said += chunk.toString()));
      const asks = async (): Promise<string> => (await machine.ags(['net', 'asks'])).stdout;
      await expect.poll(asks, { timeout: 30_000, interval: 500 }).toContain('asked.test');
      expect(requests).toEqual([]);
      expect(await machine.ags(['allow', 'asked.test'])).toMatchObject({ code: 0 });
      await until(() => said.includes('serving'));
      expect(said).toMatch(/200 Connection established\s+HTTP\/1.1 200 OK/);
      expect(requests[0]).toContain(`Bearer ${SECRET}\r\n`);
      const answer = await fetch(`http://127.0.0.1:${port}/`, { signal: AbortSignal.timeout(10_000) });
      expect(await answer.text()).toBe('from inside');
      expect([remote.holds('ags-placeholder-api-'), remote.holds(SECRET)]).toEqual([true, false]);
      child.kill('SIGTERM');
      await until(() => child.exitCode !== null || child.signalCode !== null);
      await expect(fetch(`http://127.0.0.1:${port}/`)).rejects.toThrow();
      await until(() => remote.left().length === 0);
    },
    SECONDS,
  );

  given(HAS_SSH, 'sshd')(
    'an engine that is reached by ssh works like any other',
    async () => {
      using machine = createMachine('user', { disk: true });
      const server = await startSsh(remote);
      const address = `ssh://root@127.0.0.1:${server.port}`;
      const [program, ...before] = withKey(machine, server);
      const run = (...args: string[]): string =>
        execFileSync(program, [...before, ...agsArgv(...args)], {
          cwd: machine.project,
          env: { ...machine.env, DOCKER_HOST: address },
          input: 'from here\n',
          encoding: 'utf8',
          stdio: 'pipe',
        });
      expect(run('exec', ...over(), '--review', 'later', '--', 'sh', '-c', 'cat; echo new > n.txt')).toBe(
        'from here\n',
      );
      const [task = ''] = machine.tasks();
      expect((await machine.ags(['show', task])).stdout).toContain(`on ${address}, seen from inside`);
      expect((await machine.ags(['diff', task])).stdout).toContain('+new');
      expect(remote.left()).toEqual([]);
    },
    SECONDS,
  );

  test(
    'cleanup removes old images for file sync from the engine, but none of another user',
    async () => {
      using machine = createMachine('root', { disk: true });
      const tags = (): string[] =>
        remote.docker('image', 'ls', '--format', '{{.Repository}}:{{.Tag}}').trim().split('\n').toSorted();
      const young = tags().find((tag) => tag.startsWith('ags-skeleton:far-')) ?? '';
      const [ours, theirs] = [`${machineMark()}.0`, '0123456789abcdef.0'];
      const old = { 'far-old': ours, theirs: ours, 'far-theirs': theirs, 'far-neighbour': `${machineMark()}.42424` };
      for (const [tag, maker] of Object.entries(old))
        loadOld(remote, young, `ags-skeleton:${tag}`, maker, machine.root);
      const before = tags();
      expect(before).toEqual(expect.arrayContaining([young, ...Object.keys(old).map((tag) => `ags-skeleton:${tag}`)]));
      const done = await machine.ags(['cleanup'], { env: remote.env, timeoutMs: SECONDS });
      expect(done.stdout).toContain(`ags-skeleton:far-old at ${remote.address}`);
      expect(tags()).toEqual(before.filter((tag) => tag !== 'ags-skeleton:far-old'));
    },
    SECONDS,
  );
} else test.skip('a second Docker daemon cannot be started here', () => undefined);

/** Loads a copy of the image under another name, with an old date and another maker. */
function loadOld(remote: RemoteEngine, from: string, name: string, maker: string, directory: string): void {
  const script = `set -e; mkdir "$2"; cd "$2"; docker save "$1" | tar -x; rm -f repositories
sed -i 's/"created":"[^"]*"/"created":"2020-01-01T00:00:00Z"/g; s/"comment":"[^"]*"/"comment":"'"\${3#*:}"'"/g; s/"ags.maker":"[^"]*"/"ags.maker":"'"$4"'"/g' *.json; sed -i "s#$1#$3#" manifest.json; tar -c . | docker load`;
  writeFileSync(join(directory, 'load'), script);
  execFileSync('sh', [join(directory, 'load'), from, join(directory, name.replace(':', '-')), name, maker], {
    env: { PATH: process.env['PATH'], HOME: directory, ...remote.env },
    stdio: 'pipe',
  });
}
