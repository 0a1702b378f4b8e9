// test/network/gateway-serve.test.ts: the gateway and its listener as two programs connected by a socket, as in two containers.
// uses: sandbox
import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parseAllowList } from '../../src/config/network/allow-list.ts';
import { createWorld, ORIGIN, readText, type HostContext } from '../gateway/fixture.ts';
import { AGS, HAS_SANDBOX } from '../harness.ts';

interface Place extends AsyncDisposable {
  readonly dir: string;
  readonly context: HostContext;
  readonly socket: string;
  readonly port: number;
  list(text: string): void;
  serve(): Program;
  listener(): Program;
  /** Sends to the listener, or to another port or socket, and reads to the end. */
  talk(text: string | Buffer, to?: string | number): Promise<string>;
  ags(...args: string[]): { code: number | null; stdout: string; stderr: string };
}

interface Program {
  readonly child: ChildProcess;
  readonly ready: Promise<void>;
  readonly ended: Promise<number | null>;
  stderr(): string;
}

const PROCESS_ENV = { PATH: process.env['PATH'], HOME: '/dev/null/nowhere' };

function run(args: readonly string[]): Program {
  const child = spawn(process.execPath, [AGS, ...args], { stdio: ['ignore', 'pipe', 'pipe'], env: PROCESS_ENV });
  let [stdout, stderr] = ['', ''];
  child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()));
  const ended = new Promise<number | null>((resolve) => child.on('close', resolve));
  const ready = new Promise<void>((resolve, reject) => {
    child.stdout.on('data', (chunk: Buffer) => {
      stdout += chunk.toString();
      if (stdout === 'ready\n') resolve();
    });
    void ended.then((code) => reject(new Error(`It ended with ${code}: ${stderr}`)));
  });
  ready.catch(() => undefined);
  return { child, ready, ended, stderr: () => stderr };
}

async function createPlace(list = 'allowed.test:8080 # the origin\n'): Promise<Place> {
  const dir = mkdtempSync('/tmp/ags-gws-');
  chmodSync(dir, 0o755);
  const context = await createWorld();
  const port = 20_000 + Math.floor(Math.random() * 12_000);
  const socket = join(dir, 'gw.sock');
  const programs: Program[] = [];
  const keep = (program: Program): Program => {
    programs.push(program);
    return program;
  };
  writeFileSync(join(dir, 'list.txt'), list);
  writeFileSync(
    join(dir, 'gateway.yaml'),
    `network:\n  defaults: false\n  dns: ["${context.dns}"]\n  addresses: ["${ORIGIN}/32"]\n`,
  );
  const SERVE = ['gateway', 'serve', '--socket', socket, '--rules', join(dir, 'list.txt')];
  return {
    dir,
    context,
    socket,
    port,
    list: (text) => writeFileSync(join(dir, 'list.txt'), text),
    serve: () => keep(run([...SERVE, '--config', join(dir, 'gateway.yaml'), '--log', join(dir, 'log.jsonl')])),
    listener: () => keep(run(['gateway', 'door', '--socket', socket, '--listen', `127.0.0.1:${port}`])),
    async talk(text, to = port) {
      const client: Socket = typeof to === 'string' ? connect(to) : connect(to, '127.0.0.1');
      client.on('error', () => undefined);
      client.write(text);
      const answer = await readText(client);
      client.destroy();
      return answer;
    },
    ags(...args) {
      const { status, stdout, stderr } = spawnSync(process.execPath, [AGS, ...args], {
        encoding: 'utf8',
        env: PROCESS_ENV,
      });
      return { code: status, stdout, stderr };
    },
    async [Symbol.asyncDispose]() {
      for (const { child } of programs) child.kill('SIGKILL');
      await Promise.all(programs.map(({ ended }) => ended));
      rmSync(dir, { recursive: true, force: true });
      await context[Symbol.asyncDispose]();
    },
  };
}

const connectTo = (place: string): string => `CONNECT ${place} HTTP/1.1\r\nHost: ${place}\r\n\r\n`;
const GOOD = 'HTTP/1.1 200 Connection established\r\n\r\norigin speaking\n';

test('the listener reaches only listed hosts; the log has every decision but no health check', async () => {
  await using place = await createPlace();
  await place.context.tcp(8080, (socket) => socket.end('origin speaking\n'));
  const [gateway, listener] = [place.serve(), place.listener()];
  await Promise.all([gateway.ready, listener.ready]);
  const checked = place.ags('gateway', 'check', '--socket', place.socket, '--listen', `127.0.0.1:${place.port}`);
  expect(checked).toEqual({ code: 0, stdout: 'ok\n', stderr: '' });
  expect(await place.talk(connectTo('allowed.test:8080'))).toBe(GOOD);
  expect(await place.talk(connectTo('evil.test:8080'))).toMatch(/^HTTP\/1\.1 403 ags: evil\.test:8080 is not allowed/);
  const socks = Buffer.from(`\x05\x01\x00\x05\x01\x00\x03\x0callowed.test\x1f\x90`, 'latin1');
  expect((await place.talk(socks)).endsWith('origin speaking\n')).toBe(true);
  const plain = `GET http://allowed.test:8080/ HTTP/1.1\r\nHost: allowed.test:8080\r\n\r\n`;
  expect(await place.talk(plain)).toContain('502 ');
  for (const { child, ended } of [gateway, listener]) {
    child.kill('SIGTERM');
    expect(await ended).toBe(0);
  }
  const lines = readFileSync(join(place.dir, 'log.jsonl'), 'utf8').trim().split('\n').slice(1);
  const seen = lines.map((line) => JSON.parse(line) as { host: string; by: string; verdict: string });
  expect(seen.map(({ host, by, verdict }) => `${by} ${host} ${verdict}`)).toEqual([
    'connect allowed.test allowed',
    'connect evil.test denied',
    'socks5 allowed.test allowed',
    'http allowed.test failed',
  ]);
  expect(existsSync(place.socket)).toBe(false);
  expect(place.ags('gateway', 'check', '--socket', place.socket).code).toBe(9);
});

test('a listed name that resolves to a private or loopback address is refused', async () => {
  await using place = await createPlace('inner.test:8080\nlocal.test:8080\n');
  place.context.names.set('inner.test', ['10.1.2.3']);
  place.context.names.set('local.test', ['127.0.0.1']);
  await place.serve().ready;
  expect(await place.talk(connectTo('inner.test:8080'), place.socket)).toMatch(/^HTTP\/1\.1 403 .*a private address/);
  expect(await place.talk(connectTo('local.test:8080'), place.socket)).toMatch(/^HTTP\/1\.1 403 .*loopback/);
});

test('a changed list takes effect by itself; an invalid or missing one changes nothing', async () => {
  await using place = await createPlace();
  await place.context.tcp(8080, (socket) => socket.end('origin speaking\n'));
  const gateway = place.serve();
  await gateway.ready;
  const reached = async (): Promise<boolean> =>
    (await place.talk(connectTo('allowed.test:8080'), place.socket)).startsWith('HTTP/1.1 200');
  expect(await reached()).toBe(true);
  place.list('allowed.test:8080\nwhat is this\n');
  await expect.poll(gateway.stderr).toContain('list.txt:2: "what is this" is no rule');
  expect(await reached()).toBe(true);
  place.list('allowed.test:8080\n! allowed.test:8080\n');
  await expect.poll(gateway.stderr).toContain('Rules reloaded.');
  expect(await reached()).toBe(false);
  rmSync(join(place.dir, 'list.txt'));
  await expect.poll(gateway.stderr).toContain('list.txt does not exist. The rules are unchanged.');
  expect(await reached()).toBe(false);
  place.list('allowed.test:8080\n');
  await expect.poll(reached).toBe(true);
});

test.runIf(process.getuid?.() === 0)('only its owner can connect to the socket', async () => {
  await using place = await createPlace();
  await place.serve().ready;
  expect(statSync(place.socket).mode & 0o777).toBe(0o600);
  expect(statSync(`${place.socket}.admin`).mode & 0o777).toBe(0o600);
  const tried = ['', '.admin'].map((end) => {
    const script = `require('net').connect(process.argv[1]).on('connect', () => console.log('in')).on('error', (e) => console.log(e.code)).on('connect', () => process.exit())`;
    const { stdout } = spawnSync(process.execPath, ['-e', script, `${place.socket}${end}`], {
      uid: 42_424,
      gid: 42_424,
      encoding: 'utf8',
    });
    return stdout.trim();
  });
  expect(tried).toEqual(['EACCES', 'EACCES']);
});

test('the files of a killed gateway do not block the next one, and a second gateway at the same socket is refused', async () => {
  await using place = await createPlace();
  await place.context.tcp(8080, (socket) => socket.end('origin speaking\n'));
  const [first, listener] = [place.serve(), place.listener()];
  await Promise.all([first.ready, listener.ready]);
  const second = place.serve();
  expect(await second.ended).toBe(7);
  expect(second.stderr()).toContain(`Another gateway already listens at ${place.socket}.`);
  expect(await place.talk(connectTo('allowed.test:8080'))).toBe(GOOD);
  first.child.kill('SIGKILL');
  await first.ended;
  expect(existsSync(place.socket)).toBe(true);
  expect(await place.talk(connectTo('allowed.test:8080'))).toMatch(/^HTTP\/1\.1 502 ags: the gateway does not run/);
  const both = [place.serve(), place.serve()];
  const outcome = await Promise.all(both.map((one) => Promise.race([one.ready.then(() => 'ready'), one.ended])));
  expect(outcome.map(String).toSorted()).toEqual(['7', 'ready']);
  expect(await place.talk(connectTo('allowed.test:8080'))).toBe(GOOD);
});

test('a socket that answers is not replaced, even without its lock file', async () => {
  await using place = await createPlace();
  const gateway = place.serve();
  await gateway.ready;
  // A gateway in another container has no visible lock.
  rmSync(`${place.socket}.lock`);
  const second = place.serve();
  expect(await second.ended).toBe(7);
  await expect(gateway.ready).resolves.toBeUndefined();
  expect(await place.talk(connectTo('evil.test:1'), place.socket)).toContain('403');
});

describe('the listener', () => {
  test('forwards both directions completely, each to its end', async () => {
    await using place = await createPlace();
    const heard = createHash('sha256');
    const answer = Buffer.alloc(8 * 1024 * 1024, 'the answer comes after the end of the question ');
    await place.context.tcp(8080, (socket) => {
      socket.on('data', (chunk) => heard.update(chunk));
      socket.on('end', () => socket.end(answer));
    });
    await Promise.all([place.serve().ready, place.listener().ready]);
    const client = connect({ port: place.port, host: '127.0.0.1', allowHalfOpen: true });
    client.write(connectTo('allowed.test:8080'));
    expect(await readText(client, /\r\n\r\n/)).toContain('200');
    const question = Buffer.alloc(8 * 1024 * 1024, 'a long question ');
    client.end(question);
    const got = createHash('sha256');
    for await (const chunk of client) got.update(chunk as Buffer);
    expect(heard.digest('hex')).toBe(createHash('sha256').update(question).digest('hex'));
    expect(got.digest('hex')).toBe(createHash('sha256').update(answer).digest('hex'));
  });

  test('does not buffer data that its client does not read', async () => {
    await using place = await createPlace();
    const much = Buffer.alloc(400 * 1024 * 1024, 'x');
    const some = Buffer.alloc(256 * 1024 * 1024, 'y');
    let connections = 0;
    await place.context.tcp(8080, (socket) => socket.end(connections++ === 0 ? much : some));
    const listener = place.listener();
    await Promise.all([place.serve().ready, listener.ready]);
    const client = connect({ port: place.port, host: '127.0.0.1' });
    client.write(connectTo('allowed.test:8080'));
    expect(await readText(client, /\r\n\r\n/)).toContain('200');
    client.pause();
    // Serving another client leaves enough time to buffer data of the first.
    const other = connect({ port: place.port, host: '127.0.0.1' });
    other.write(connectTo('allowed.test:8080'));
    let bytes = 0;
    for await (const chunk of other) bytes += (chunk as Buffer).length;
    expect(bytes).toBeGreaterThan(some.length);
    const status = readFileSync(`/proc/${listener.child.pid}/status`, 'utf8');
    expect(Number(/VmHWM:\s+(\d+)/.exec(status)?.[1]) / 1024).toBeLessThan(180);
    client.destroy();
  });

  test.runIf(HAS_SANDBOX)(
    'ends cleanly as the first process of a container, and listens on loopback only',
    async () => {
      await using place = await createPlace();
      const child = spawn(
        'unshare',
        [
          '--user',
          '--map-root-user',
          '--pid',
          '--fork',
          process.execPath,
          AGS,
          'gateway',
          'listener',
          '--socket',
          place.socket,
          '--listen',
          `127.0.0.1:${place.port}`,
        ],
        { stdio: ['ignore', 'pipe', 'pipe'], env: PROCESS_ENV },
      );
      const ended = new Promise<number | null>((resolve) => child.on('close', resolve));
      await new Promise((resolve) => child.stdout.once('data', resolve));
      const first = readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8').trim();
      process.kill(Number(first), 'SIGTERM');
      expect(await ended).toBe(0);
      const open = place.ags('gateway', 'listener', '--socket', place.socket, '--listen', '0.0.0.0:3128');
      expect(open.code).toBe(2);
      expect(open.stderr).toContain('is not a loopback address');
    },
  );
});

test('a list is read line by line', () => {
  const text = '# hosts\n\ngithub.com\n  *.example.com:8443   # with a port\n! bad.example.com\nhttp://plain.test\n';
  expect(parseAllowList(text, 'list').map(({ action, host, port, origin }) => [action, host, port, origin])).toEqual([
    ['allow', 'github.com', 443, 'list:3'],
    ['allow', '*.example.com', 8443, 'list:4'],
    ['deny', 'bad.example.com', 443, 'list:5'],
    ['allow', 'plain.test', 80, 'list:6'],
  ]);
});

test.each([
  ['.example.com', /list:1: ".example.com" is no rule/],
  ['GET example.com/v1/*', /methods and paths are not supported here/],
  ['*', /is no rule/],
  ['*.com', /too wide/],
  ['a.test b.test', /is no rule/],
])('%s is refused as a line of a list', (line, problem) => {
  expect(() => parseAllowList(line, 'list')).toThrow(problem);
});

test.each([
  [['serve', '--socket', '/tmp/x.sock'], 'Which file has the rules?'],
  [['serve', '--rules', 'x'], 'Where should the gateway listen?'],
  [['listener'], 'Which gateway should the listener connect to?'],
  [['check'], 'What should be checked?'],
  [['check', '--log', 'x'], 'ags gateway check does not take --log.'],
  [['open'], 'ags gateway has no "open".'],
])('ags gateway %j is a usage error that names the problem', (args, problem) => {
  const { status, stderr } = spawnSync(process.execPath, [AGS, 'gateway', ...args], {
    encoding: 'utf8',
    env: PROCESS_ENV,
  });
  expect([status, stderr.includes(problem)]).toEqual([2, true]);
});
