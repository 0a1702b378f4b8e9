// test/attacks/gateway-requests.test.ts: inspected requests: plain HTTP, hosts with rules about requests, secrets and their endpoints
// (attacks.md A57, A61, A65, A137 to A139). A connection that was opened for one host serves no other.
// needs: low-ports
import type { Socket } from 'node:net';
import { describe, expect, test } from 'vitest';
import type { BoundSecret } from '../../src/gateway/values.ts';
import {
  createWorld,
  helloFor,
  ORIGIN,
  readText,
  startTls,
  statusOf,
  type TestGateway,
  type HostContext,
} from '../gateway/fixture.ts';

const request = (target: string, host: string, more = ''): string =>
  `GET ${target} HTTP/1.1\r\nHost: ${host}\r\n${more}\r\n`;

/** A server that answers every piece with "ok" and records the pieces. */
function listener(): { heard: string[]; serve: (socket: Pick<Socket, 'on' | 'write' | 'end'>) => void } {
  const heard: string[] = [];
  return {
    heard,
    serve(socket) {
      socket.on('data', (chunk: Buffer) => {
        heard.push(chunk.toString('latin1'));
        socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok');
      });
      socket.on('end', () => socket.end());
    },
  };
}

describe('plain HTTP', () => {
  async function plain(): Promise<{ context: HostContext; gateway: TestGateway; heard: string[] }> {
    const context = await createWorld();
    const { heard, serve } = listener();
    await context.tcp(80, serve);
    for (const name of ['plain.test', 'evil.test', 'other.test']) context.names.set(name, [ORIGIN]);
    return { context, heard, gateway: await context.gateway({ allow: ['http://plain.test', 'http://other.test'] }) };
  }

  test('an allowed request is served, without the fields that were meant for the proxy', async () => {
    const { context, gateway, heard } = await plain();
    await using _ = context;
    const more = 'Proxy-Authorization: Basic eDp5\r\nProxy-Connection: keep-alive\r\nX-Kept: yes\r\n';
    expect(await gateway.talk(request('http://PLAIN.test./a?b', 'plain.TEST', more))).toMatch(/ok$/);
    expect(heard).toHaveLength(1);
    expect(heard[0]).toMatch(/^GET \/a\?b HTTP\/1\.1\r\nHost: plain\.test\r\nX-Kept: yes\r\n/);
    expect(heard[0]).not.toMatch(/proxy-/i);
    await expect
      .poll(() => gateway.log.map(({ verdict, method, path }) => [verdict, method, path]))
      .toEqual([['allowed', 'GET', '/a']]);
  });

  test('a second request on the same connection does not reach another host, nor this one', async () => {
    const { context, gateway, heard } = await plain();
    await using _ = context;
    for (const second of ['http://evil.test/', 'http://other.test/', 'http://plain.test/'])
      expect(
        await gateway.talk(request('http://plain.test/', 'plain.test') + request(second, new URL(second).host)),
      ).toMatch(/^HTTP\/1\.1 200 OK\r\n.*Connection: close\r\n\r\nok$/s);
    expect(heard.map((text) => text.split('\r\n')[1])).toEqual(Array(3).fill('Host: plain.test'));
  });

  test('every request in a tunnel to port 80 must be for the host of the tunnel', async () => {
    const { context, gateway, heard } = await plain();
    await using _ = context;
    for (const [target, host] of [
      ['/', 'evil.test'],
      ['/', 'other.test'],
      ['http://evil.test/', 'evil.test'],
      ['http://evil.test/', 'plain.test'],
      ['https://plain.test/', 'plain.test'],
      ['/', 'plain.test:8080'],
    ] as const) {
      const socket = await gateway.open('plain.test', 80);
      socket.write(request('/first', 'plain.test'));
      expect(await readText(socket, /ok$/)).toMatch(/^HTTP\/1\.1 200/);
      socket.write(request(target, host));
      expect(statusOf(await readText(socket, /\r\n\r\n/))).toBe('421');
      socket.destroy();
    }
    const socket = await gateway.open('plain.test', 80);
    socket.write(helloFor('plain.test'));
    expect(statusOf(await readText(socket))).toBe('400');
    expect(heard.map((text) => text.split('\r\n').slice(0, 2).join(' '))).toEqual(
      Array(6).fill('GET /first HTTP/1.1 Host: plain.test'),
    );
  });

  test('A65: an upgrade that the origin declines opens no way around inspection', async () => {
    const { context, gateway, heard } = await plain();
    await using _ = context;
    const key = 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n';
    const socket = await gateway.open('plain.test', 80);
    socket.write(request('/', 'plain.test', `Connection: Upgrade\r\nUpgrade: websocket\r\n${key}`));
    expect(statusOf(await readText(socket, /ok$/))).toBe('200');
    socket.write(request('/', 'evil.test'));
    expect(statusOf(await readText(socket, /\r\n\r\n/))).toBe('421');
    // No other upgrade is passed on to the origin.
    await gateway.talk(request('http://plain.test/', 'plain.test', 'Connection: Upgrade\r\nUpgrade: h2c\r\n'));
    expect(heard).toHaveLength(2);
    expect(heard[1]).not.toMatch(/upgrade/i);
  });

  test('A65: an origin that switches to an unrequested protocol is cut off', async () => {
    await using context = await createWorld();
    await context.tcp(80, (socket) => {
      socket.once('data', () =>
        socket.write('HTTP/1.1 101 Switching\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\nraw'),
      );
    });
    const gateway = await context.gateway({ allow: ['http://allowed.test'] });
    const answer = await gateway.talk(
      request('http://allowed.test/', 'allowed.test', 'Connection: Upgrade\r\nUpgrade: websocket\r\n'),
    );
    expect(statusOf(answer)).toBe('502');
    expect(answer).not.toContain('raw');
  });

  test('answered uploads leave no listeners behind on a kept connection', async () => {
    const { context, gateway, heard } = await plain();
    await using _ = context;
    const warnings: string[] = [];
    const onWarning = (warning: Error): void => void warnings.push(warning.name);
    process.on('warning', onWarning);
    const socket = await gateway.open('plain.test', 80);
    for (let i = 0; i < 15; i++) {
      socket.write('POST / HTTP/1.1\r\nHost: plain.test\r\nContent-Length: 4\r\n\r\n');
      expect(statusOf(await readText(socket, /ok$/))).toBe('200');
      socket.write('body');
      await expect.poll(() => heard.at(-1)).toBe('body');
      await readText(socket, /ok$/, 50);
      heard.length = 0;
    }
    process.off('warning', onWarning);
    expect(warnings).toEqual([]);
  });

  test('A74: a name that leads inside is refused for plain HTTP too', async () => {
    await using context = await createWorld();
    const inner = await context.spy(80, '127.0.0.1');
    context.names.set('allowed.test', ['127.0.0.1']);
    const gateway = await context.gateway({ allow: ['http://allowed.test'] });
    const answer = await gateway.talk(request('http://allowed.test/', 'allowed.test'));
    expect(answer).toMatch(
      /^HTTP\/1\.1 403 ags: allowed\.test:80 is not allowed by the network policy .* which is loopback/,
    );
    expect(inner.connections).toBe(0);
    await expect.poll(() => gateway.log.map(({ verdict }) => verdict)).toContain('denied');
  });
});

describe('hosts whose requests are inspected', () => {
  async function inspected(more: Parameters<HostContext['gateway']>[0] = {}): Promise<{
    context: HostContext;
    gateway: TestGateway;
    heard: string[];
    secure: (servername?: string) => Promise<Socket>;
  }> {
    const context = await createWorld();
    const { heard, serve } = listener();
    await context.tls(443, serve);
    context.names.set('api.test', [ORIGIN]);
    context.names.set('evil.test', [ORIGIN]);
    const gateway = await context.gateway({
      allow: ['GET api.test/v1/*', 'allowed.test'],
      authority: context.authority,
      ...more,
    });
    const secure = async (name = 'api.test'): Promise<Socket> =>
      startTls(await gateway.open('api.test'), name, context);
    return { context, gateway, heard, secure };
  }

  test('A57: a request for another host, by Host or by target, gets 421 and reaches no origin', async () => {
    const { context, gateway, heard, secure } = await inspected();
    await using _ = context;
    for (const [target, host] of [
      ['/v1/x', 'evil.test'],
      ['/v1/x', 'allowed.test'],
      ['/v1/x', 'api.test:8443'],
      ['https://evil.test/v1/x', 'api.test'],
      ['https://evil.test/v1/x', 'evil.test'],
      ['http://api.test/v1/x', 'api.test'],
    ] as const) {
      const socket = await secure();
      socket.write(request(target, host));
      expect(statusOf(await readText(socket, /\r\n\r\n/))).toBe('421');
      socket.destroy();
    }
    expect(heard).toEqual([]);
    expect(gateway.log.filter(({ method }) => method !== undefined).map(({ verdict }) => verdict)).toEqual(
      Array(6).fill('denied'),
    );
  });

  test('A139: each request on a kept connection is judged, and TRACE never passes', async () => {
    const { context, heard, secure } = await inspected();
    await using _ = context;
    let socket = await secure();
    const ask = async (text: string): Promise<string> => {
      if (socket.readableEnded || socket.destroyed) socket = await secure();
      socket.write(text);
      const answer = await readText(socket, /\r\n\r\n[^]+/);
      if (/^connection: close/im.test(answer)) await readText(socket);
      return statusOf(answer);
    };
    expect([
      await ask(request('/v1/items', 'api.test')),
      await ask(request('/v2/items', 'api.test')),
      await ask('DELETE /v1/items HTTP/1.1\r\nHost: api.test\r\n\r\n'),
      await ask('TRACE /v1/items HTTP/1.1\r\nHost: api.test\r\n\r\n'),
      await ask(request('/v1/../v2/items', 'api.test')),
      await ask(request('/v1/%2e%2e/v2', 'api.test')),
      await ask(request('/v1/last', 'api.test')),
    ]).toEqual(['200', '403', '403', '405', '400', '400', '200']);
    expect(heard.map((text) => text.split('\r\n')[0])).toEqual(['GET /v1/items HTTP/1.1', 'GET /v1/last HTTP/1.1']);
  });

  test('A59: another name in the TLS greeting is refused before any TLS is spoken', async () => {
    const { context, gateway, heard, secure } = await inspected();
    await using _ = context;
    await expect(secure('evil.test')).rejects.toThrow();
    await expect(secure('allowed.test')).rejects.toThrow();
    expect(heard).toEqual([]);
    expect(gateway.log.map(({ verdict, reason }) => `${verdict}: ${reason}`)).toEqual(
      Array(2).fill('denied: its TLS names another host (SNI)'),
    );
  });

  test('without an authority an inspected host is refused, not passed through', async () => {
    const { context, gateway, heard } = await inspected({ authority: null });
    await using _ = context;
    expect(await gateway.tunnel('api.test')).toMatch(/^HTTP\/1\.1 403 .*start it again/);
    expect([heard, context.asked]).toEqual([[], []]);
  });

  test('narrower rules apply to the next request on an open connection', async () => {
    const { context, gateway, heard, secure } = await inspected();
    await using _ = context;
    const socket = await secure();
    socket.write(request('/v1/a', 'api.test'));
    expect(statusOf(await readText(socket, /ok$/))).toBe('200');
    gateway.gateway.setRules([]);
    socket.write(request('/v1/b', 'api.test'));
    expect(statusOf(await readText(socket, /\r\n\r\n/))).toBe('403');
    expect(heard).toHaveLength(1);
  });

  const secret: BoundSecret = {
    name: 'model',
    host: 'api.test',
    port: 443,
    header: 'authorization',
    value: 'real-value-1234',
    placeholder: 'placeholder-5678',
    send: null,
    viaEndpoint: false,
  };

  test('A137, A138: a placeholder becomes the secret only for its host and in its header', async () => {
    const { context, gateway, heard, secure } = await inspected({ allow: ['http://plain.test'], secrets: [secret] });
    await using _ = context;
    context.names.set('plain.test', [ORIGIN]);
    const plain = listener();
    await context.tcp(80, plain.serve);
    const more = 'Authorization: Bearer placeholder-5678\r\nX-Other: placeholder-5678\r\n';
    const socket = await secure();
    socket.write(request('/?q=placeholder-5678', 'api.test', more));
    await readText(socket, /ok$/);
    expect(heard[0]).toContain('Authorization: Bearer real-value-1234\r\n');
    expect(heard[0]?.match(/placeholder-5678/g)).toHaveLength(2);
    expect(heard[0]?.match(/real-value-1234/g)).toHaveLength(1);
    await gateway.talk(request('http://plain.test/', 'plain.test', more));
    await gateway.talk(request('http://api.test/', 'api.test', more));
    expect(plain.heard.join('')).not.toContain('real-value');
    expect(JSON.stringify(gateway.log)).not.toMatch(/real-value|placeholder-5678/);
  });

  test('an endpoint serves its own path and its own host only', async () => {
    const { context, gateway, heard } = await inspected({
      allow: [],
      secrets: [{ ...secret, viaEndpoint: true, send: 'Bearer {}' }],
    });
    await using _ = context;
    const port = await gateway.listener({ kind: 'endpoint' });
    const ask = async (target: string, host = `127.0.0.1:${port}`): Promise<string> =>
      statusOf(await gateway.talk(request(target, host), { port, until: /\r\n\r\n[^]+/ }));
    expect([
      await ask('/model/v1/x'),
      await ask('/model/../evil'),
      await ask('/other/v1/x'),
      await ask('/modelx'),
      await ask('/'),
      await ask('http://evil.test/'),
      await ask('http://evil.test/model/'),
    ]).toEqual(['200', '200', '404', '404', '404', '404', '404']);
    expect(heard.map((text) => text.split('\r\n').slice(0, 2))).toEqual([
      ['GET /v1/x HTTP/1.1', 'Host: api.test'],
      ['GET /../evil HTTP/1.1', 'Host: api.test'],
    ]);
    expect(heard[0]).toContain('authorization: Bearer real-value-1234');
    // The secret's host may be reached in other ways, but the secret stays at its endpoint.
    const socket = await gateway.open('api.test');
    const secure = await startTls(socket, 'api.test', context);
    secure.write(request('/', 'api.test', 'Authorization: placeholder-5678\r\n'));
    await readText(secure, /ok$/);
    expect(heard[2]).toContain('Authorization: placeholder-5678');
  });
});
