// test/gateway/behaviour.test.ts: a gateway over time: changed rules, asks, budgets, and slow, dead or closed connections.
// needs: low-ports
import { spawn } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import type { Ask } from '../../src/gateway/asks.ts';
import type { Refusal } from '../../src/gateway/limits.ts';
import {
  connectTo,
  createWorld,
  helloFor,
  LIMITS,
  ORIGIN,
  readText,
  rulesOf,
  socks,
  statusOf,
  type TestGateway,
  type HostContext,
} from './fixture.ts';

const linesOf = ({ log }: TestGateway): string[] => log.map(({ verdict, reason }) => `${verdict}: ${reason}`);

/** An origin that echoes what it gets and ends when the client ends. */
const echoes = (context: HostContext): Promise<number> =>
  context.tcp(0, (socket) => void socket.on('data', (chunk) => socket.write(chunk)).on('end', () => socket.end()));

async function hears(socket: Socket, text: string): Promise<boolean> {
  socket.write(text);
  return (await readText(socket, new RegExp(text), 10_000)) === text;
}

/** A port that never accepts: its process is blocked and its queue is full. */
async function deadPort(): Promise<{ port: number } & Disposable> {
  const program = `const server = require('net').createServer().listen({ port: 0, host: '${ORIGIN}', backlog: 1 }, () => {
    require('fs').writeSync(1, String(server.address().port));
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
  });`;
  const child = spawn(process.execPath, ['-e', program], { stdio: ['ignore', 'pipe', 'inherit'] });
  const [chunk] = (await once(child.stdout, 'data')) as [Buffer];
  const port = Number(chunk.toString());
  const queue = Array.from({ length: 8 }, () => connect({ host: ORIGIN, port }).on('error', () => undefined));
  await sleep(200);
  return {
    port,
    [Symbol.dispose]() {
      for (const socket of queue) socket.destroy();
      child.kill('SIGKILL');
    },
  };
}

describe('rules that change', () => {
  test('open tunnels stay open, and the next connection follows the new rules', async () => {
    await using context = await createWorld();
    const port = await echoes(context);
    const gateway = await context.gateway({ allow: [`allowed.test:${port}`] });
    const tunnel = await gateway.open('allowed.test', port);
    gateway.gateway.setRules([]);
    expect(await hears(tunnel, 'one')).toBe(true);
    expect(await gateway.tunnel('allowed.test', port)).toMatch(/^HTTP\/1\.1 403 /);
    gateway.gateway.setRules(rulesOf([`allowed.test:${port}`]));
    const second = await gateway.open('allowed.test', port);
    gateway.gateway.setRules(rulesOf([`allowed.test:${port}`], ['allowed.test']));
    expect(await gateway.tunnel('allowed.test', port)).toContain('denied by allowed.test (test)');
    expect([await hears(tunnel, 'two'), await hears(second, 'three')]).toEqual([true, true]);
    expect(gateway.gateway.rules.map(({ action, host }) => `${action} ${host}`)).toEqual([
      'allow allowed.test',
      'deny allowed.test',
    ]);
  });
});

describe('record mode: the user is asked', () => {
  const record = (
    context: HostContext,
    more: { askSeconds?: number; onAsk?: (ask: Ask) => void } = {},
  ): Promise<TestGateway> =>
    context.gateway({
      allow: [],
      deny: ['denied.test'],
      policy: { mode: 'record', askSeconds: more.askSeconds ?? 30 },
      ...(more.onAsk === undefined ? {} : { onAsk: more.onAsk }),
    });

  test('connections to an unknown host wait together and continue once it is allowed', async () => {
    await using context = await createWorld();
    const port = await context.tcp(0, (socket) => void socket.end('served'));
    const asked: Ask[] = [];
    const gateway = await record(context, { onAsk: (ask) => asked.push(ask) });
    const place = `allowed.test:${port}`;
    const answers = [1, 2, 3].map(() => gateway.talk(connectTo(place), { until: /served/ }));
    const bySocks = gateway.talk(socks('allowed.test', port), { until: /served/ });
    await expect.poll(() => gateway.gateway.asks).toMatchObject([{ host: 'allowed.test', port, count: 4 }]);
    expect([asked.length, context.asked]).toEqual([1, []]);
    gateway.gateway.setRules(rulesOf(['other.test']));
    expect(gateway.gateway.asks).toHaveLength(1);
    gateway.gateway.setRules(rulesOf([place]));
    for (const answer of await Promise.all(answers)) expect(answer).toMatch(/^HTTP\/1\.1 200 .*served$/s);
    expect(await bySocks).toMatch(/served$/);
    expect(gateway.gateway.asks).toEqual([]);
    await expect.poll(() => gateway.log.length).toBe(4);
    expect(new Set(gateway.log.map(({ verdict, unknown }) => `${verdict} ${unknown}`))).toEqual(
      new Set(['allowed undefined']),
    );
  });

  test('an unanswered ask is denied at its timeout and logged as unknown', async () => {
    await using context = await createWorld();
    const gateway = await record(context, { askSeconds: 1 });
    const started = performance.now();
    const answer = await gateway.talk(connectTo('unknown.test:443'));
    expect(performance.now() - started).toBeGreaterThan(900);
    expect(statusOf(answer)).toBe('403');
    expect(answer).toContain('ags allow unknown.test');
    expect(gateway.log).toMatchObject([{ host: 'unknown.test', verdict: 'denied', unknown: true }]);
    expect(context.asked).toEqual([]);
  });

  test('a deny ends the waiting connections, and denied hosts are never asked about', async () => {
    await using context = await createWorld();
    const asked: Ask[] = [];
    const gateway = await record(context, { onAsk: (ask) => asked.push(ask) });
    expect(statusOf(await gateway.talk(connectTo('denied.test:443')))).toBe('403');
    const waiting = gateway.talk(connectTo('unknown.test:443'));
    await expect.poll(() => asked).toMatchObject([{ host: 'unknown.test' }]);
    gateway.gateway.setRules(rulesOf([], ['unknown.test']));
    expect(await waiting).toContain('denied by unknown.test (test)');
    expect(gateway.log.map(({ host, unknown }) => [host, unknown])).toEqual([
      ['denied.test', undefined],
      ['unknown.test', undefined],
    ]);
  });

  test('a program that requests endless hosts gets at most 100 asks at a time', async () => {
    await using context = await createWorld();
    const asked: Ask[] = [];
    const gateway = await record(context, { onAsk: (ask) => asked.push(ask) });
    const sockets = await Promise.all(Array.from({ length: 150 }, () => gateway.connect()));
    for (const [i, socket] of sockets.entries()) socket.write(connectTo(`host${i}.test:443`));
    await expect.poll(() => gateway.log.length).toBe(50);
    expect([asked.length, gateway.gateway.asks.length]).toEqual([100, 100]);
    for (const socket of sockets) socket.destroy();
  });

  test('closing the gateway ends waiting connections and logs them', async () => {
    await using context = await createWorld();
    const gateway = await record(context);
    const waiting = gateway.talk(connectTo('unknown.test:443'));
    await expect.poll(() => gateway.gateway.asks.length).toBe(1);
    gateway.gateway.close();
    expect(statusOf(await waiting)).not.toBe('200');
    await expect
      .poll(() => gateway.log)
      .toMatchObject([{ host: 'unknown.test', verdict: expect.not.stringMatching('allowed') }]);
    expect(gateway.log).toHaveLength(1);
  });
});

describe('budgets', () => {
  test('a spent byte budget cuts the connection, refuses later ones with the reason and is reported once', async () => {
    await using context = await createWorld();
    const origin = await context.spy(0);
    const refusals: Refusal[] = [];
    const gateway = await context.gateway({
      allow: [`allowed.test:${origin.port}`],
      policy: { limits: { ...LIMITS, bytesOut: 100_000 } },
      onLimit: (refusal) => refusals.push(refusal),
    });
    const [first, idle] = [
      await gateway.open('allowed.test', origin.port),
      await gateway.open('allowed.test', origin.port),
    ];
    first.write(Buffer.alloc(99_000));
    await expect.poll(() => origin.heard.length).toBe(99_000);
    for (let i = 0; i < 100 && !first.destroyed; i++) {
      first.write(Buffer.alloc(50_000));
      await sleep(5);
    }
    await readText(first);
    expect(origin.heard.length).toBeLessThanOrEqual(100_000);
    const spent = 'the 100000 bytes that this run may send are spent (network.limits.bytesOut)';
    await expect.poll(() => linesOf(gateway)).toEqual([`denied: ${spent}`]);
    const later = await gateway.talk(connectTo(`allowed.test:${origin.port}`));
    expect(later).toMatch(/^HTTP\/1\.1 503 ags: refused by the network policy of this sandbox: the 100000 bytes /);
    // A connection that was open before cannot send any more either.
    idle.write('one more byte');
    await readText(idle);
    expect(origin.heard.length).toBeLessThanOrEqual(100_000);
    expect(refusals.filter(({ first: isFirst }) => isFirst)).toEqual([
      { limit: 'bytesOut', reason: spent, first: true },
    ]);
    expect(origin.connections).toBe(2);
  });

  test('A151: connections above the rate limit are refused, and setting the clock back does no harm', async () => {
    await using context = await createWorld();
    const refusals: Refusal[] = [];
    const clock = { ms: 50_000_000 };
    const gateway = await context.gateway({
      policy: { limits: { ...LIMITS, perSecond: 10 } },
      onLimit: (refusal) => refusals.push(refusal),
      now: () => clock.ms,
    });
    const ask = async (): Promise<string> => statusOf(await gateway.talk(connectTo('evil.test:443')));
    const burst = await Promise.all(Array.from({ length: 30 }, ask));
    expect([burst.filter((one) => one === '403').length, burst.filter((one) => one === '503').length]).toEqual([
      20, 10,
    ]);
    clock.ms -= 3_600_000;
    expect(await ask()).toBe('503');
    clock.ms += 1000;
    expect(await Promise.all(Array.from({ length: 10 }, ask))).toEqual(Array(10).fill('403'));
    expect(refusals.filter(({ first }) => first)).toHaveLength(1);
    expect(gateway.log).toHaveLength(30);
  });

  test('A70: connections above the limit get 503 or are closed, and do not pile up', async () => {
    await using context = await createWorld();
    const port = await echoes(context);
    const gateway = await context.gateway({
      allow: [`allowed.test:${port}`],
      policy: { limits: { ...LIMITS, connections: 50 } },
    });
    const tunnel = await gateway.open('allowed.test', port);
    const idle = await Promise.all(Array.from({ length: 49 }, () => gateway.connect()));
    await expect.poll(() => gateway.gateway.stats.open).toBe(50);
    const extra = await Promise.all(Array.from({ length: 300 }, () => gateway.connect()));
    // The gateway answers 64 of the extra connections; it closes the rest without an answer.
    const answers = await Promise.all(extra.map((socket) => readText(socket)));
    expect(answers.filter((answer) => answer !== '').map(statusOf)).toEqual(Array(64).fill('503'));
    expect([gateway.gateway.stats.open, await hears(tunnel, 'still here')]).toEqual([50, true]);
    for (const socket of [...idle, ...extra]) socket.destroy();
    await expect.poll(() => gateway.gateway.stats.open).toBe(1);
    expect(await hears(await gateway.open('allowed.test', port), 'and again')).toBe(true);
  });
});

describe('clients that are slow or gone', () => {
  const waits = { firstWordsMs: 300 };

  test('A70: silent and letter-by-letter clients are disconnected while others are served', async () => {
    await using context = await createWorld();
    const port = await echoes(context);
    const gateway = await context.gateway({ allow: [`allowed.test:${port}`], waits });
    const silent = await gateway.connect();
    const slow = await gateway.connect();
    const [silentEnd, slowEnd] = [readText(silent), readText(slow)];
    const typing = setInterval(() => slow.writable && slow.write('G'), 20);
    const tunnel = await gateway.open('allowed.test', port);
    expect([await silentEnd, await slowEnd]).toEqual(['', '']);
    clearInterval(typing);
    expect(await hears(tunnel, 'served')).toBe(true);
    await expect.poll(() => linesOf(gateway)).toEqual(Array(2).fill('failed: it did not say where to in time'));
  });

  test('a tunnel to port 443 whose TLS does not begin in time is closed, with its connection to the origin', async () => {
    await using context = await createWorld();
    const origin = await context.spy(443);
    const gateway = await context.gateway({ waits });
    for (const words of ['', '\x16', '\x16\x03\x01\x02\x00\x01\x00']) {
      const socket = await gateway.open('allowed.test', 443);
      socket.write(Buffer.from(words, 'latin1'));
      await readText(socket);
      expect(socket.destroyed || socket.readableEnded).toBe(true);
    }
    await expect.poll(() => linesOf(gateway)).toEqual(Array(3).fill('denied: its TLS did not begin in time'));
    await expect.poll(() => origin.sockets.every((socket) => socket.destroyed)).toBe(true);
    await expect.poll(() => [origin.heard, gateway.gateway.stats.open]).toEqual(['', 0]);
  });

  test('A70: an endless request head is cut at 64 kB, whatever it contains', async () => {
    await using context = await createWorld();
    const gateway = await context.gateway();
    const block = 'a'.repeat(8000);
    const endless = [
      `GET http://${block.repeat(20)}`,
      `GET / HTTP/1.1\r\n${`X: ${block}\r\n`.repeat(20)}`,
      block.repeat(20),
    ];
    for (const bytes of endless) expect(statusOf(await gateway.talk(bytes))).toMatch(/^(414|431)$/);
    const many = `GET / HTTP/1.1\r\n${'A: b\r\n'.repeat(300)}\r\n`;
    expect(statusOf(await gateway.talk(many))).toBe('431');
    expect(gateway.log).toHaveLength(4);
  });

  test('a client that ends before naming its target is closed at once and logged', async () => {
    await using context = await createWorld();
    const gateway = await context.gateway({ waits: { firstWordsMs: 60_000 } });
    for (const words of ['', 'CONNECT allo', '\x05', '\x05\x01\x00\x05\x01'])
      await gateway.talk(Buffer.from(words, 'latin1'), { end: true });
    await expect.poll(() => linesOf(gateway)).toEqual(Array(4).fill('failed: it went away before it said where to'));
    await expect.poll(() => gateway.gateway.stats.open).toBe(0);
  });

  test('a client that half-closes before its connection is open is still read to the end and answered', async () => {
    await using context = await createWorld();
    const port = await context.tcp(0, (socket) => {
      let said = '';
      socket.on('data', (chunk) => (said += chunk.toString())).on('end', () => socket.end(`heard ${said}`));
    });
    await context.tcp(80, (socket) => {
      socket.once('data', () => socket.end('HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfine'));
    });
    const gateway = await context.gateway({ allow: [`allowed.test:${port}`, 'http://allowed.test'] });
    const ask = (bytes: string | Buffer): Promise<string> => gateway.talk(bytes, { end: true });
    expect(await ask(connectTo(`allowed.test:${port}`))).toMatch(/^HTTP\/1\.1 200 .*\r\n\r\nheard $/s);
    expect(await ask(`${connectTo(`allowed.test:${port}`)}words`)).toMatch(/heard words$/);
    expect(await ask(socks('allowed.test', port))).toMatch(/heard $/);
    const plain = 'GET http://allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\n\r\n';
    expect(await ask(plain)).toMatch(/^HTTP\/1\.1 200 OK\r\n.*fine$/s);
    expect(await ask(`${connectTo('allowed.test:80')}${plain}`)).toMatch(/HTTP\/1\.1 200 OK\r\n.*fine$/s);
    await expect.poll(() => gateway.gateway.stats.open).toBe(0);
  });

  test('an origin that ends at once is passed on as an ended connection', async () => {
    await using context = await createWorld();
    await context.tcp(443, (socket) => void socket.end());
    const port = await context.tcp(0, (socket) => void socket.end());
    const gateway = await context.gateway({ allow: ['allowed.test', `allowed.test:${port}`] });
    const raw = await gateway.open('allowed.test', port);
    expect(await readText(raw)).toBe('');
    expect(raw.readableEnded).toBe(true);
    const secure = await gateway.open('allowed.test', 443);
    await sleep(100);
    secure.write(helloFor('allowed.test'));
    expect(await readText(secure)).toBe('');
    expect(secure.readableEnded || secure.destroyed).toBe(true);
  });

  test('a client that resets its connection ends the connection to the origin', async () => {
    await using context = await createWorld();
    const origin = await context.spy(0);
    const gateway = await context.gateway({ allow: [`allowed.test:${origin.port}`] });
    const socket = await gateway.open('allowed.test', origin.port);
    socket.write('hello');
    await expect.poll(() => origin.heard).toBe('hello');
    socket.resetAndDestroy();
    await expect.poll(() => origin.sockets[0]?.destroyed).toBe(true);
    await expect.poll(() => gateway.log).toMatchObject([{ verdict: 'allowed', bytesOut: 5 }]);
    await expect.poll(() => gateway.gateway.stats.open).toBe(0);
  });
});

describe('origins that are slow or gone', () => {
  test('an origin that refuses, resets or does not exist is reported as such', async () => {
    await using context = await createWorld();
    const resets = await context.tcp(0, (socket) => void socket.on('data', () => socket.resetAndDestroy()));
    const gateway = await context.gateway({ allow: [`allowed.test:${resets}`, 'allowed.test:1', 'gone.test'] });
    const refusing = await gateway.talk(connectTo('allowed.test:1'));
    expect(refusing).toMatch(
      /^HTTP\/1\.1 502 ags: allowed.test:1 is allowed, but could not be reached: .* refused the connection/,
    );
    expect(await gateway.talk(connectTo('gone.test:443'))).toMatch(/^HTTP\/1\.1 502 .*gone\.test does not exist/);
    await gateway.talk(`${connectTo(`allowed.test:${resets}`)}hello`);
    await expect
      .poll(() => gateway.log.map(({ verdict, port }) => `${verdict} ${port}`))
      .toEqual(['failed 1', 'failed 443', `allowed ${resets}`]);
    await expect.poll(() => gateway.gateway.stats.open).toBe(0);
  });

  test('a silent name server delays only the hosts that it serves', async () => {
    await using context = await createWorld();
    const port = await echoes(context);
    const silent = createSocket('udp4').bind(0, '127.0.0.1');
    await once(silent, 'listening');
    const gateway = await context.gateway({
      allow: ['slow.test', `${ORIGIN}:${port}`],
      policy: { dns: [`127.0.0.1:${silent.address().port}`] },
    });
    const slow = gateway.talk(connectTo('slow.test:443'), { waitMs: 20_000 });
    const quick = await gateway.open(ORIGIN, port);
    expect(await hears(quick, 'quick')).toBe(true);
    expect(await slow).toMatch(
      /^HTTP\/1\.1 504 ags: slow\.test:443 is allowed, but could not be reached: no name server/,
    );
    silent.close();
  });

  test('a silent origin gets the client a 504 in time, while others are served', async () => {
    await using context = await createWorld();
    using dead = await deadPort();
    const port = await echoes(context);
    const allow = [`allowed.test:${dead.port}`, `allowed.test:${port}`];
    const gateway = await context.gateway({ allow, waits: { connectMs: 600 } });
    const started = performance.now();
    const answer = gateway.talk(connectTo(`allowed.test:${dead.port}`), { waitMs: 10_000 });
    expect(await hears(await gateway.open('allowed.test', port), 'served')).toBe(true);
    expect(await answer).toMatch(
      /^HTTP\/1\.1 504 ags: allowed\.test:\d+ is allowed, but could not be reached: .* in time/,
    );
    expect(performance.now() - started).toBeLessThan(10_000);
    expect(gateway.log).toMatchObject([{ verdict: 'failed', port: dead.port }]);
  });

  test('a client that vanishes during a dial cancels it, at the proxy and at a grant', async () => {
    await using context = await createWorld();
    using dead = await deadPort();
    const grant = { name: 'db', port: 1, host: ORIGIN, hostPort: dead.port, origin: 'test' };
    const gateway = await context.gateway({ allow: [`allowed.test:${dead.port}`], waits: { connectMs: 20_000 } });
    const listener = await gateway.listener({ kind: 'tcp', grant });
    // Connections to that port that are in SYN_SENT (state 2).
    const unanswered = new RegExp(` [0-9A-F]{8}:${dead.port.toString(16).toUpperCase().padStart(4, '0')} 02 `, 'g');
    const dials = (): number => readFileSync('/proc/net/tcp', 'utf8').match(unanswered)?.length ?? 0;
    const before = dials();
    const sockets = [
      ...(await Promise.all(Array.from({ length: 20 }, () => gateway.connect()))),
      await gateway.connect(listener),
    ];
    for (const socket of sockets.slice(0, 20)) socket.write(connectTo(`allowed.test:${dead.port}`));
    await expect.poll(dials).toBe(before + 21);
    for (const socket of sockets) socket.resetAndDestroy();
    await expect.poll(dials).toBe(before);
    await expect
      .poll(() => linesOf(gateway))
      .toEqual(Array(21).fill('failed: it went away before the connection was open'));
    await expect.poll(() => gateway.gateway.stats.open).toBe(0);
  });
});

describe('an upstream proxy of the user', () => {
  test('a silent proxy is dropped when the client leaves, and at the timeout when it stays', async () => {
    await using context = await createWorld();
    const proxy = await context.spy(0, '127.0.0.1');
    const upstream = {
      kind: 'http',
      host: '127.0.0.1',
      port: proxy.port,
      auth: null,
      hosts: null,
      resolve: 'here',
    } as const;
    // One gateway never times out here, the other nearly at once: a busy machine changes nothing.
    const patient = await context.gateway({ upstreams: [upstream], waits: { connectMs: 600_000 } });
    const gone = await patient.connect();
    gone.write(connectTo('allowed.test:443'));
    await expect.poll(() => proxy.heard).toMatch(/^CONNECT /);
    gone.resetAndDestroy();
    await expect.poll(() => proxy.sockets[0]?.readableEnded || proxy.sockets[0]?.destroyed).toBe(true);
    await expect.poll(() => linesOf(patient)).toEqual(['failed: it went away before the connection was open']);
    await expect.poll(() => patient.gateway.stats.open).toBe(0);
    const hasty = await context.gateway({ upstreams: [upstream], waits: { connectMs: 300 } });
    const answer = await hasty.talk(connectTo('allowed.test:443'), { waitMs: 60_000 });
    expect(answer).toMatch(/^HTTP\/1\.1 504 ags: allowed\.test:443 is allowed, .* did not answer in time/);
    await expect.poll(() => hasty.gateway.stats.open).toBe(0);
  });
});

describe('closing a gateway', () => {
  test('closing ends every connection at once, and the log is complete when it returns', async () => {
    await using context = await createWorld();
    using dead = await deadPort();
    const origin = await context.spy(0);
    const gateway = await context.gateway({
      allow: [`allowed.test:${origin.port}`, `allowed.test:${dead.port}`],
      // The lookup of the program takes longer than the gateway waits for it.
      who: () => sleep(5000, 'late', { ref: false }),
    });
    const tunnel = await gateway.open('allowed.test', origin.port);
    tunnel.write('hello');
    await expect.poll(() => origin.heard).toBe('hello');
    const silent = await gateway.connect();
    const dialling = await gateway.connect();
    dialling.write(connectTo(`allowed.test:${dead.port}`));
    expect(statusOf(await gateway.talk(connectTo('evil.test:443')))).toBe('403');
    await expect.poll(() => gateway.gateway.stats.open).toBe(3);
    const ended = [tunnel, silent, dialling].map((socket) => once(socket.resume(), 'close'));
    gateway.gateway.close();
    expect(gateway.log.map(({ host, verdict, bytesOut }) => `${host} ${verdict} ${bytesOut}`).toSorted()).toEqual([
      ' failed 0',
      'allowed.test allowed 5',
      'allowed.test failed 0',
      'evil.test denied 0',
    ]);
    await Promise.all(ended.map((end) => Promise.race([end, sleep(2000)])));
    await expect.poll(() => origin.sockets[0]?.destroyed).toBe(true);
    await expect.poll(() => gateway.gateway.stats.open).toBe(0);
    // A connection after the end gets no answer, and nothing is logged for it.
    expect(await gateway.talk(connectTo('evil.test:443'))).toBe('');
    await sleep(100);
    expect(gateway.log).toHaveLength(4);
  });

  test('a failed lookup of the program does not keep the decision out of the log', async () => {
    await using context = await createWorld();
    const gateway = await context.gateway({ who: () => Promise.reject(new Error('gone')) });
    await gateway.talk(connectTo('evil.test:443'));
    await expect.poll(() => gateway.log).toMatchObject([{ host: 'evil.test', verdict: 'denied' }]);
  });

  test('an internal error ends one connection and is logged', async () => {
    await using context = await createWorld();
    const gateway = await context.gateway({
      ownAddresses: () => {
        throw new TypeError('no interfaces');
      },
    });
    expect(await gateway.talk(connectTo('allowed.test:443'))).toBe('');
    await expect.poll(() => linesOf(gateway)).toEqual(['failed: a mistake of the gateway itself (TypeError)']);
    await expect.poll(() => gateway.gateway.stats.open).toBe(0);
  });
});
