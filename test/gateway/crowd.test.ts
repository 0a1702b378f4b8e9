// test/gateway/crowd.test.ts: many clients at once: idle ones, and ones that act at random.
// needs: low-ports
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { connectTo, createWorld, helloFor, LIMITS, ORIGIN, readText, socks } from './fixture.ts';

/** As many tunnels as this process may open: each has two sockets here, the other two are in processes of their own. */
function mostTunnels(wanted: number): number {
  const most = execFileSync('prlimit', [
    '--nofile',
    '--output=SOFT',
    '--noheadings',
    `--pid=${process.pid}`,
  ]).toString();
  return most.trim() === 'unlimited' ? wanted : Math.min(wanted, Math.floor((Number(most) - 600) / 2));
}

/** A program that prints one line when it is ready. */
async function helper(program: string): Promise<{ line: string } & Disposable> {
  const child = spawn(process.execPath, ['-e', program], { stdio: ['ignore', 'pipe', 'inherit'] });
  const [chunk] = (await once(child.stdout, 'data')) as [Buffer];
  return { line: chunk.toString().trim(), [Symbol.dispose]: () => void child.kill('SIGKILL') };
}

const echoes = (): Promise<{ line: string } & Disposable> =>
  helper(`const server = require('net').createServer((socket) => socket.on('error', () => {}).pipe(socket))
    .listen({ port: 0, host: '${ORIGIN}', backlog: 4096 }, () => console.log(server.address().port));`);

/** Opens this many tunnels and keeps them open. */
const idlers = (count: number, proxy: number, place: string): Promise<{ line: string } & Disposable> =>
  helper(`let begun = 0, ready = 0;
    const one = () => {
      if (begun++ >= ${count}) return;
      const socket = require('net').connect({ host: '127.0.0.1', port: ${proxy} }, () => socket.write(${JSON.stringify(connectTo(place))}));
      socket.on('error', () => {}).once('data', (answer) => {
        if (!String(answer).startsWith('HTTP/1.1 200')) return console.log(String(answer));
        if (++ready === ${count}) console.log('ready');
        one();
      });
    };
    for (let i = 0; i < 100; i++) one();`);

test('A70: ten thousand idle tunnels do not slow other clients down', { timeout: 180_000 }, async () => {
  await using context = await createWorld();
  using origin = await echoes();
  const port = Number(origin.line);
  const count = mostTunnels(10_000);
  const limits = { connections: count + 10, perSecond: 100_000, bytesOut: null };
  const [crowded, other] = [
    await context.gateway({ allow: [`allowed.test:${port}`], policy: { limits } }),
    await context.gateway({ allow: [`allowed.test:${port}`] }),
  ];
  const before = process.memoryUsage().rss;
  using crowd = await idlers(count, crowded.port, `allowed.test:${port}`);
  expect([crowd.line, crowded.gateway.stats.open]).toEqual(['ready', count]);
  const kilobytes = Math.round((process.memoryUsage().rss - before) / count / 1024);
  console.log(`${count} idle tunnels: ${kilobytes} kB for each`);
  for (const gateway of [crowded, other]) {
    const started = performance.now();
    const socket = await gateway.open('allowed.test', port);
    socket.write('ping');
    expect(await readText(socket, /ping/)).toBe('ping');
    expect(performance.now() - started).toBeLessThan(10_000);
  }
  expect(kilobytes).toBeLessThan(100);
  crowded.gateway.close();
  expect(crowded.log).toHaveLength(count + 1);
  await expect.poll(() => crowded.gateway.stats.open, { timeout: 20_000 }).toBe(0);
});

test(
  'randomly behaving clients each get one log line, and no connection stays open',
  { timeout: 120_000 },
  async () => {
    await using context = await createWorld();
    const seed = Number(process.env['AGS_SEED'] ?? Date.now() % 1_000_000);
    const random = generator(seed);
    const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)] as T;
    // The origins act at random too: they speak, fall silent, end or reset.
    let toOrigins = 0;
    const moody = (socket: Socket): void => {
      toOrigins++;
      socket.on('close', () => toOrigins--);
      socket.on('data', () => (random() < 0.3 ? socket.resetAndDestroy() : socket.write('answer')));
      socket.on('end', () => socket.end());
      if (random() < 0.2) setTimeout(() => socket.end('bye'), random() * 50);
    };
    await context.tcp(443, moody);
    await context.tcp(80, (socket) => {
      toOrigins++;
      socket.on('close', () => toOrigins--).on('end', () => socket.end());
      socket.on('data', () => (random() < 0.3 ? socket.resetAndDestroy() : socket.write(OK)));
    });
    const port = await context.tcp(0, moody);
    const gateway = await context.gateway({
      allow: ['allowed.test', 'http://allowed.test', `allowed.test:${port}`, 'gone.test', 'allowed.test:1'],
      policy: { limits: { ...LIMITS, connections: 10_000 } },
      waits: { firstWordsMs: 500, connectMs: 2000 },
      who: (peer) => (peer % 3 === 0 ? Promise.reject(new Error('no')) : sleep(peer % 50, 'node')),
    });
    const grant = { name: 'db', port: 1, host: '127.0.0.1', hostPort: 1, origin: 'test' };
    const listeners = [gateway.port, gateway.port, gateway.port, await gateway.listener({ kind: 'tcp', grant })];
    const hello = helloFor('allowed.test').toString('latin1');
    const scripts = [
      `${connectTo('allowed.test:443')}${hello}`,
      `${connectTo('allowed.test:443')}${helloFor('evil.test').toString('latin1')}`,
      `${connectTo(`allowed.test:${port}`)}some words`,
      connectTo('gone.test:443'),
      connectTo('allowed.test:1'),
      connectTo('evil.test:443'),
      'GET http://allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\n\r\n',
      'POST http://allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\nContent-Length: 10\r\n\r\n12345',
      socks('allowed.test', port).toString('latin1'),
      socks('allowed.test', 443).toString('latin1') + hello,
      '\x05\x01\x02',
      '\r\n\r\n',
      '',
    ];
    async function client(): Promise<void> {
      const socket = await gateway.connect(pick(listeners));
      const script = Buffer.from(pick(scripts), 'latin1');
      const whole = random() < 0.4 ? script : script.subarray(0, Math.floor(random() * script.length));
      if (random() < 0.7) socket.resume();
      for (let at = 0; at < whole.length && socket.writable;) {
        const size = 1 + Math.floor(random() * (random() < 0.5 ? 10 : 300));
        socket.write(whole.subarray(at, at + size));
        at += size;
        if (random() < 0.3) await sleep(random() * 20);
      }
      await sleep(random() < 0.5 ? 0 : random() * 100);
      const ways = [() => socket.resetAndDestroy(), () => socket.destroy(), () => socket.end(), () => undefined];
      pick(ways)();
      await sleep(random() * 200);
      socket.destroy();
    }
    const clients = 400;
    for (let begun = 0; begun < clients; begun += 50) await Promise.all(Array.from({ length: 50 }, client));
    await expect.poll(() => gateway.gateway.stats.open, { timeout: 20_000, message: `seed ${seed}` }).toBe(0);
    // One line for each connection; inspected requests of plain HTTP have lines of their own.
    const lines = gateway.log;
    await expect.poll(() => lines.length, { message: `seed ${seed}` }).toBe(clients);
    await expect.poll(() => toOrigins, { timeout: 20_000, message: `seed ${seed}` }).toBe(0);
    const { allowed = 0, denied = 0, failed = 0 } = gateway.gateway.stats.decisions;
    expect(allowed + denied + failed).toBe(gateway.log.length);
  },
);

test(
  'mangled requests for a host that is not allowed reach no origin, at any listener',
  { timeout: 120_000 },
  async () => {
    await using context = await createWorld();
    for (const name of ['evil.test', 'test']) context.names.set(name, [ORIGIN]);
    const spies = await Promise.all([443, 80].map((port) => context.spy(port)));
    const secrets = [
      {
        name: 'key',
        host: 'allowed.test',
        port: 443,
        header: 'x',
        value: 'v',
        placeholder: 'p',
        send: null,
        viaEndpoint: true,
      },
    ];
    const gateway = await context.gateway({
      authority: context.authority,
      secrets,
      policy: { limits: { ...LIMITS, connections: 10_000 } },
    });
    const seed = Number(process.env['AGS_SEED'] ?? Date.now() % 1_000_000);
    const random = generator(seed);
    const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)] as T;
    const listeners = [
      gateway.port,
      await gateway.listener({ kind: 'web' }),
      await gateway.listener({ kind: 'endpoint' }),
    ];
    const scripts = [
      connectTo('evil.test:443') + helloFor('evil.test').toString('latin1'),
      'GET http://evil.test/?allowed.test HTTP/1.1\r\nHost: evil.test\r\n\r\n',
      'POST /other/allowed.test HTTP/1.1\r\nHost: evil.test\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
      socks('evil.test', 443).toString('latin1'),
      helloFor('evil.test').toString('latin1'),
    ];
    const noise = [
      '\r\n',
      '\n',
      '\0',
      ' ',
      ':',
      '@',
      '.',
      '/',
      'Host: allowed.test\r\n',
      ':443',
      '%00',
      '\xff',
      '\x05\x01\x00',
      '[::1]',
    ];
    function mangle(text: string): Buffer {
      let result = text;
      for (let times = Math.floor(random() * 4); times >= 0; times--) {
        const at = Math.floor(random() * result.length);
        const cut = random() < 0.5 ? 0 : Math.floor(random() * 4);
        result = result.slice(0, at) + (random() < 0.3 ? '' : pick(noise)) + result.slice(at + cut);
      }
      return Buffer.from(result, 'latin1');
    }
    const count = 4000;
    for (let begun = 0; begun < count; begun += 100)
      await Promise.all(
        Array.from({ length: 100 }, () => gateway.talk(mangle(pick(scripts)), { port: pick(listeners), end: true })),
      );
    await expect.poll(() => gateway.gateway.stats.open, { timeout: 20_000 }).toBe(0);
    expect([spies.map(({ connections }) => connections), context.asked], `seed ${seed}`).toEqual([[0, 0], []]);
    expect(gateway.log).toHaveLength(count);
    expect(gateway.log.filter(({ verdict }) => verdict === 'allowed')).toEqual([]);
  },
);

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';

function generator(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
