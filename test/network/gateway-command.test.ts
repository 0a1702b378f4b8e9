// test/network/gateway-command.test.ts: `ags gateway`: the standalone gateway of an administrator.
import { spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { createWorld, ORIGIN, readText, type HostContext } from '../gateway/fixture.ts';
import { AGS } from '../harness.ts';

interface Running extends AsyncDisposable {
  readonly dir: string;
  readonly context: HostContext;
  readonly port: number;
  readonly admin: number;
  stderr(): string;
  configure(more: Settings): void;
  signal(name: NodeJS.Signals): void;
  talk(text: string, to?: string | number): Promise<string>;
  end(): Promise<number | null>;
}

interface Settings {
  readonly allow?: string;
  readonly gateway?: string;
  readonly broken?: string;
}

async function start(settings: Settings = {}, dir = mkdtempSync('/tmp/ags-gw-')): Promise<Running> {
  const context = await createWorld();
  await context.tcp(8080, (socket) => socket.end('origin speaking\n'));
  // Below the range that the kernel assigns to clients, where a port may be in use.
  const base = 20_000 + 2 * Math.floor(Math.random() * 6000);
  const configure = ({ allow = '"allowed.test:8080"', gateway = '', broken = '' }: Settings): void =>
    writeFileSync(
      join(dir, 'gateway.yaml'),
      `gateway:\n  listen: ["127.0.0.1:${base}", "unix:${dir}/gw.sock"]\n  admin: 127.0.0.1:${base + 1}\n  log: ${dir}/log.jsonl\n${gateway}` +
        `network:\n  defaults: false\n  allow: [${allow}]\n  dns: ["${context.dns}"]\n  addresses: ["${ORIGIN}/32"]\n${broken}`,
    );
  configure(settings);
  const child = spawn(process.execPath, [AGS, 'gateway', '--config', join(dir, 'gateway.yaml')], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { PATH: process.env['PATH'], HOME: dir },
  });
  let [stdout, stderr] = ['', ''];
  child.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()));
  const ended = new Promise<number | null>((resolve) => child.on('close', resolve));
  const failed = ended.then((code) => Promise.reject(new Error(`It ended with ${code}: ${stderr}`)));
  await Promise.race([failed, expect.poll(() => stdout, { timeout: 20_000 }).toBe('ready\n')]);
  failed.catch(() => undefined);
  return {
    dir,
    context,
    port: base,
    admin: base + 1,
    stderr: () => stderr,
    configure,
    signal: (name) => void child.kill(name),
    async talk(text, to = base) {
      const socket: Socket = typeof to === 'string' ? connect(to) : connect(to, '127.0.0.1');
      socket.on('error', () => undefined);
      socket.write(text);
      const answer = await readText(socket);
      socket.destroy();
      return answer;
    },
    end() {
      child.kill('SIGTERM');
      return ended;
    },
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL');
      await ended;
      rmSync(dir, { recursive: true, force: true });
      await context[Symbol.asyncDispose]();
    },
  };
}

const CONNECT = 'CONNECT allowed.test:8080 HTTP/1.1\r\nHost: allowed.test:8080\r\n\r\n';

test('the gateway serves at its address and socket, reports health and metrics, and ends cleanly', async () => {
  await using gateway = await start();
  const good = 'HTTP/1.1 200 Connection established\r\n\r\norigin speaking\n';
  expect(await gateway.talk(CONNECT)).toBe(good);
  expect(await gateway.talk(CONNECT, join(gateway.dir, 'gw.sock'))).toBe(good);
  expect(await gateway.talk(CONNECT.replaceAll('allowed', 'evil'))).toMatch(
    /^HTTP\/1\.1 403 ags: evil\.test:8080 is not/,
  );
  expect(statSync(join(gateway.dir, 'gw.sock')).mode & 0o777).toBe(0o600);
  const get = (path: string) => fetch(`http://127.0.0.1:${gateway.admin}${path}`);
  expect(await (await get('/healthz')).text()).toBe('ok\n');
  const metrics = await (await get('/metrics')).text();
  expect(metrics).toContain('ags_gateway_decisions_total{verdict="allowed"} 2\n');
  expect(metrics).toContain('ags_gateway_decisions_total{verdict="denied"} 1\n');
  expect([
    (await get('/')).status,
    (await fetch(`http://127.0.0.1:${gateway.admin}/healthz`, { method: 'POST' })).status,
  ]).toEqual([404, 405]);
  expect(await gateway.end()).toBe(0);
  const lines = readFileSync(join(gateway.dir, 'log.jsonl'), 'utf8').trim().split('\n');
  expect(lines.map((line) => (JSON.parse(line) as { verdict?: string }).verdict)).toEqual([
    undefined,
    'allowed',
    'allowed',
    'denied',
  ]);
  expect(readdirSync(gateway.dir).includes('gw.sock')).toBe(false);
});

test('a changed file takes effect completely or not at all, and open connections stay', async () => {
  await using gateway = await start();
  const open = connect(gateway.port, '127.0.0.1');
  open.write(CONNECT);
  expect(await readText(open, /speaking\n/)).toContain('origin speaking');
  gateway.configure({ allow: '"other.test:8080"', broken: '  bogus: 1\n' });
  gateway.signal('SIGHUP');
  await expect.poll(gateway.stderr).toContain('unknown key "bogus"');
  expect(gateway.stderr()).toContain('The rules are unchanged.');
  expect(await gateway.talk(CONNECT)).toContain('200');
  gateway.configure({ allow: '"other.test:8080"' });
  gateway.signal('SIGHUP');
  await expect.poll(gateway.stderr).toContain('Rules reloaded.');
  expect(await gateway.talk(CONNECT)).toContain('403');
  open.destroy();
});

describe('A67: with a token', () => {
  test('a client without the token, or with another, is refused', async () => {
    const dir = mkdtempSync('/tmp/ags-gw-');
    writeFileSync(join(dir, 'token'), 'the-right-token\n', { mode: 0o600 });
    await using gateway = await start({ gateway: `  tokenFile: ${dir}/token\n` }, dir);
    const withToken = (token: string): string =>
      CONNECT.replace(
        '\r\n\r\n',
        `\r\nProxy-Authorization: Basic ${Buffer.from(`any:${token}`).toString('base64')}\r\n\r\n`,
      );
    expect(await gateway.talk(CONNECT)).toMatch(/^HTTP\/1\.1 407 [\s\S]*Proxy-Authenticate: Basic/);
    expect(await gateway.talk(withToken('another'))).toMatch(/^HTTP\/1\.1 407 /);
    expect(await gateway.talk(withToken('the-right-token'))).toContain('origin speaking');
    await gateway.end();
    expect(readFileSync(join(dir, 'log.jsonl'), 'utf8')).not.toContain('the-right-token');
  });
});

test.each([
  ['', 'ags gateway takes one word: serve, listener, engine or check'],
  ['missing.yaml', 'does not exist'],
  ['network: {}\n', 'does not say where to listen (gateway.listen)'],
  ['gateway: { listen: ["0.0.0.0:3128"] }\n', 'can be reached from other machines, so clients must have a token'],
  ['gateway: { listen: ["localhost:3128"] }\n', 'gateway.listen[0]'],
])('the error in %j is reported, and no gateway starts', async (text, problem) => {
  const dir = mkdtempSync('/tmp/ags-gw-');
  try {
    const file = join(dir, 'gateway.yaml');
    if (text.includes(':')) writeFileSync(file, text);
    const args = text === '' ? [] : ['--config', file];
    const child = spawn(process.execPath, [AGS, 'gateway', ...args], { env: { PATH: process.env['PATH'], HOME: dir } });
    let stderr = '';
    child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()));
    expect(await new Promise((resolve) => child.on('close', resolve))).toBe(2);
    expect(stderr).toContain(problem);
  } finally {
    rmSync(dir, { recursive: true });
  }
});

test('an existing log is renamed, not overwritten', async () => {
  const dir = mkdtempSync('/tmp/ags-gw-');
  writeFileSync(join(dir, 'log.jsonl'), 'of an earlier time\n');
  await using gateway = await start({}, dir);
  expect(await gateway.talk(CONNECT)).toContain('origin speaking');
  await gateway.end();
  const aside = readdirSync(dir).filter((name) => /^log\.jsonl\.\d{8}T\d{6}Z$/.test(name));
  expect(aside).toHaveLength(1);
  expect(readFileSync(join(dir, aside[0] ?? ''), 'utf8')).toBe('of an earlier time\n');
});
