// test/nested-docker/image-cache/cache.test.ts: the image cache between a client and a scripted registry.
import { once } from 'node:events';
import { existsSync, mkdtempSync, readdirSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import type { Server } from 'node:http';
import { connect, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createImageCache, MOST_AT_WORK } from '../../../src/nested-docker/image-cache/cache.ts';
import { openImageStore } from '../../../src/nested-docker/image-cache/store.ts';
import { createRegistryClient } from '../../../src/nested-docker/image-cache/upstream.ts';
import { ask, digestOf, startHub, type Answer, type Hub } from './hub.ts';

let hub: Hub;
let dir: string;
let nowMs: number;
const open: Server[] = [];
/** Ports of servers that replace hosts with TLS; the injected `open` connects to them without TLS. */
const stands = new Map<string, string>();

beforeEach(async () => {
  hub = await startHub();
  dir = mkdtempSync(join(tmpdir(), 'ags-images-'));
  nowMs = 1_000_000;
});
afterEach(async () => {
  for (const server of open.splice(0)) {
    server.closeAllConnections();
    server.close();
  }
  await hub[Symbol.asyncDispose]();
  rmSync(dir, { recursive: true, force: true });
});

/** Each task has its own cache server over the same store. */
async function startCache(
  registries: Record<string, string> = { 'docker.io': hub.origin },
  mostBytes = 1e9,
): Promise<string> {
  const server = createImageCache({
    store: openImageStore(dir, mostBytes),
    client: createRegistryClient({
      open: async (url) => connect({ host: '127.0.0.1', port: Number(url.port || stands.get(url.hostname)) }),
    }),
    registries: new Map(Object.entries(registries)),
    now: () => nowMs,
    log: () => undefined,
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  open.push(server);
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const BLOB = 'a layer of an image';
const MANIFEST = JSON.stringify({ schemaVersion: 2 });

function fill(repository = 'library/app'): void {
  hub.content.set(`/v2/${repository}/manifests/1`, MANIFEST);
  hub.content.set(`/v2/${repository}/manifests/${digestOf(MANIFEST)}`, MANIFEST);
  hub.content.set(`/v2/${repository}/blobs/${digestOf(BLOB)}`, BLOB);
}

test('a second task gets a pulled image without a request to the registry', async () => {
  fill();
  for (let task = 0; task < 2; task++) {
    const cache = await startCache();
    expect(await ask(cache, '/v2/')).toMatchObject({ status: 200 });
    expect(await ask(cache, '/v2/library/app/manifests/1')).toMatchObject({
      status: 200,
      text: MANIFEST,
      digest: digestOf(MANIFEST),
    });
    expect(await ask(cache, `/v2/library/app/blobs/${digestOf(BLOB)}`)).toMatchObject({ status: 200, text: BLOB });
  }
  expect(hub.asked).toEqual(['GET /v2/library/app/manifests/1', `GET /v2/library/app/blobs/${digestOf(BLOB)}`]);
});

test('simultaneous requests for the same layer make one request to the registry', async () => {
  fill();
  const caches = await Promise.all([startCache(), startCache(), startCache()]);
  const path = `/v2/library/app/blobs/${digestOf(BLOB)}`;
  const answers = await Promise.all([...caches, ...caches].map((cache) => ask(cache, path)));
  expect(answers.map(({ text }) => text)).toEqual(Array(6).fill(BLOB));
  expect(hub.asked).toEqual([`GET ${path}`]);
});

test('a layer that does not match its digest is cut off before its end, and not kept', async () => {
  const wrong = 'x'.repeat(300_000);
  const path = `/v2/library/app/blobs/${digestOf(BLOB)}`;
  hub.content.set(path, wrong);
  const cache = await startCache();
  const answer = await ask(cache, path);
  expect(answer.broken).toBe(true);
  expect(answer.text.length).toBeLessThan(wrong.length);
  expect(readdirSync(join(dir, 'blobs'))).toEqual([]);
  expect(readdirSync(join(dir, 'new'))).toEqual([]);
});

test('a manifest that does not match its digest is refused', async () => {
  hub.content.set(`/v2/library/app/manifests/${digestOf(MANIFEST)}`, '{"other":true}');
  hub.content.set('/v2/library/app/manifests/1', (_request, response) =>
    response.writeHead(200, { 'docker-content-digest': digestOf(BLOB) }).end(MANIFEST),
  );
  const cache = await startCache();
  for (const reference of [digestOf(MANIFEST), '1'])
    expect(await ask(cache, `/v2/library/app/manifests/${reference}`)).toMatchObject({ status: 502 });
  expect(readdirSync(join(dir, 'blobs'))).toEqual([]);
});

test.each(['POST', 'PUT', 'PATCH', 'DELETE'])('%s is refused and not forwarded', async (method) => {
  const cache = await startCache();
  for (const path of ['/v2/library/app/blobs/uploads/', '/v2/library/app/manifests/1'])
    expect(await ask(cache, path, method)).toMatchObject({ status: 405 });
  expect(hub.asked).toEqual([]);
});

test.each([
  ['http://ghcr.io/v2/a/b/manifests/1', 403],
  ['/v2/a/b/manifests/1?ns=ghcr.io', 403],
  ['http://169.254.169.254/latest/meta-data/', 404],
  ['/v2/../../etc/passwd', 404],
  ['/v2/a/b/blobs/sha256:..%2f..%2fetc', 400],
  ['/v2/a/../b/manifests/1', 404],
  ['/v2/_catalog', 404],
  ['http://user:password@host/v2/a/manifests/1', 400],
])('%s is answered with %i, without a request to a registry', async (path, status) => {
  const cache = await startCache();
  expect(await ask(cache, path)).toMatchObject({ status });
  expect(hub.asked).toEqual([]);
});

test('a name made for catastrophic backtracking is refused at once', async () => {
  const cache = await startCache();
  expect(await ask(cache, `/v2/${'a-'.repeat(33)}a/x`)).toMatchObject({ status: 404 });
  expect(hub.asked).toEqual([]);
});

test('CONNECT is refused', async () => {
  const cache = new URL(await startCache());
  const socket = connect({ host: cache.hostname, port: Number(cache.port) });
  socket.write('CONNECT 127.0.0.1:22 HTTP/1.1\r\nHost: 127.0.0.1:22\r\n\r\n');
  let text = '';
  socket.on('data', (chunk: Buffer) => (text += chunk.toString('latin1')));
  await once(socket, 'close');
  expect(text).toMatch(/^HTTP\/1\.1 403 /);
});

test('a configured registry is used for its own images only', async () => {
  fill('owner/app');
  const cache = await startCache({ 'ghcr.io': hub.origin });
  expect(await ask(cache, 'http://ghcr.io/v2/owner/app/manifests/1')).toMatchObject({ status: 200, text: MANIFEST });
  expect(await ask(cache, '/v2/owner/app/manifests/1?ns=ghcr.io')).toMatchObject({ status: 200 });
  expect(await ask(cache, '/v2/owner/app/manifests/1')).toMatchObject({ status: 403 });
  expect(hub.asked).toEqual(['GET /v2/owner/app/manifests/1']);
});

test('a tag is checked again after a minute, and a changed one is fetched', async () => {
  fill();
  const cache = await startCache();
  await ask(cache, '/v2/library/app/manifests/1');
  nowMs += 61_000;
  expect(await ask(cache, '/v2/library/app/manifests/1')).toMatchObject({ text: MANIFEST });
  const newer = JSON.stringify({ schemaVersion: 2, newer: true });
  hub.content.set('/v2/library/app/manifests/1', newer);
  expect(await ask(cache, '/v2/library/app/manifests/1')).toMatchObject({ text: MANIFEST });
  nowMs += 61_000;
  expect(await ask(cache, '/v2/library/app/manifests/1')).toMatchObject({ text: newer });
  expect(hub.asked.map((line) => line.split(' ')[0])).toEqual(['GET', 'HEAD', 'HEAD', 'GET']);
});

test('a changed tag is fetched even if the clock has moved back', async () => {
  fill();
  const cache = await startCache();
  await ask(cache, '/v2/library/app/manifests/1');
  const newer = JSON.stringify({ schemaVersion: 2, newer: true });
  hub.content.set('/v2/library/app/manifests/1', newer);
  nowMs -= 600_000;
  expect(await ask(cache, '/v2/library/app/manifests/1')).toMatchObject({ text: newer });
});

test('a mirror of one project does not change tags for another', async () => {
  fill();
  await using evil = await startHub();
  evil.content.set('/v2/library/app/manifests/1', '{"evil":true}');
  expect(await ask(await startCache({ 'docker.io': evil.origin }), '/v2/library/app/manifests/1')).toMatchObject({
    text: '{"evil":true}',
  });
  expect(await ask(await startCache(), '/v2/library/app/manifests/1')).toMatchObject({ text: MANIFEST });
});

test('a layer is served only if the task’s own registry serves it, even if that one claims to have it', async () => {
  fill('secret/app');
  await using other = await startHub();
  const path = `/v2/secret/app/blobs/${digestOf(BLOB)}`;
  expect(await ask(await startCache(), path)).toMatchObject({ status: 200 });
  const elsewhere = await startCache({ 'docker.io': other.origin });
  expect(await ask(elsewhere, path)).toMatchObject({ status: 404 });
  // This registry answers HEAD but not GET.
  other.content.set(path, (request, response) =>
    response.writeHead(request.method === 'HEAD' ? 200 : 404, { 'content-length': BLOB.length }).end(),
  );
  const answer = await ask(elsewhere, path);
  expect(answer.text).not.toContain(BLOB);
  expect(answer.status).toBe(404);
});

test('a layer shared by two images is fetched once', async () => {
  fill('library/app');
  fill('library/more');
  const cache = await startCache();
  const [first, second] = ['app', 'more'].map((name) => `/v2/library/${name}/blobs/${digestOf(BLOB)}`);
  expect(await ask(cache, first ?? '')).toMatchObject({ text: BLOB });
  expect(await ask(cache, second ?? '')).toMatchObject({ text: BLOB });
  expect(await ask(cache, second ?? '')).toMatchObject({ text: BLOB });
  expect(hub.asked).toEqual([`GET ${first}`, `HEAD ${second}`]);
});

test('many Accept headers for one tag leave one entry', async () => {
  fill();
  const cache = await startCache();
  for (let i = 0; i < 40; i++)
    await ask(cache, '/v2/library/app/manifests/1', 'GET', { accept: `application/x-${i}, application/y` });
  expect(readdirSync(join(dir, 'tags'))).toHaveLength(1);
  expect(hub.asked).toHaveLength(1);
});

test('a client that does not read a cached layer blocks no other client', async () => {
  const large = 'x'.repeat(8_000_000);
  const paths = ['app', 'more', 'again'].map((name) => `/v2/library/${name}/blobs/${digestOf(large)}`);
  for (const path of paths) hub.content.set(path, large);
  const cache = await startCache();
  const [first, second, third] = paths;
  expect((await ask(cache, first ?? '')).text).toHaveLength(large.length);
  const { hostname, port } = new URL(cache);
  const stalled = connect({ host: hostname, port: Number(port) }).pause();
  stalled.write(`GET ${second} HTTP/1.1\r\nhost: x\r\n\r\n`);
  while (!hub.asked.includes(`HEAD ${second}`)) await new Promise((resolve) => setTimeout(resolve, 10));
  expect((await ask(cache, third ?? '')).text).toHaveLength(large.length);
  stalled.destroy();
});

test('a client that reads a fetched layer slowly blocks no other client', async () => {
  const large = 'x'.repeat(48_000_000);
  const path = `/v2/library/app/blobs/${digestOf(large)}`;
  hub.content.set(path, large);
  const { hostname, port } = new URL(await startCache());
  const slow = connect({ host: hostname, port: Number(port) });
  let received = 0;
  slow.on('data', (chunk: Buffer) => {
    received += chunk.length;
    slow.pause();
    setTimeout(() => slow.resume(), 300);
  });
  slow.write(`GET ${path} HTTP/1.1\r\nhost: x\r\n\r\n`);
  await once(slow, 'data');
  expect((await ask(await startCache(), path)).text).toHaveLength(large.length);
  expect(received).toBeLessThan(large.length);
  // The slow client gets the whole layer in the end.
  slow.removeAllListeners('data').resume();
  for await (const chunk of slow) if ((received += (chunk as Buffer).length) > large.length) break;
  slow.destroy();
  expect(hub.asked).toEqual([`GET ${path}`]);
}, 60_000);

test('a client that does not read an answer blocks no other client’s request for a tag', async () => {
  fill();
  const large = 'x'.repeat(48_000_000);
  const blob = `/v2/library/app/blobs/${digestOf(large)}`;
  hub.content.set(blob, large);
  const cache = await startCache();
  await ask(cache, blob);
  const { hostname, port } = new URL(cache);
  // The second answer on a connection waits for the first.
  const stalled = connect({ host: hostname, port: Number(port) }).pause();
  for (const path of [blob, '/v2/library/app/manifests/1']) stalled.write(`GET ${path} HTTP/1.1\r\nhost: x\r\n\r\n`);
  while (readdirSync(join(dir, 'tags')).length === 0) await new Promise((resolve) => setTimeout(resolve, 10));
  nowMs += 61_000;
  hub.content.set('/v2/library/app/manifests/1', '{"newer":true}');
  expect(await ask(await startCache(), '/v2/library/app/manifests/1')).toMatchObject({ text: '{"newer":true}' });
  stalled.destroy();
}, 60_000);

test('an endless answer of one registry blocks no request to another', async () => {
  fill();
  await using evil = await startHub();
  for (const path of [`blobs/${digestOf(BLOB)}`, `manifests/${digestOf(MANIFEST)}`]) {
    evil.content.set(`/v2/library/app/${path}`, (_request, response) => void response.writeHead(200).write('a'));
    void ask(await startCache({ 'docker.io': evil.origin }), `/v2/library/app/${path}`);
    while (!evil.asked.includes(`GET /v2/library/app/${path}`)) await new Promise((resolve) => setTimeout(resolve, 10));
    expect(await ask(await startCache(), `/v2/library/app/${path}`)).toMatchObject({ status: 200 });
  }
}, 60_000);

test('many requests at once over one connection cause a limited number of upstream connections', async () => {
  const cache = new URL(await startCache());
  const [most, all] = [MOST_AT_WORK, MOST_AT_WORK + 8];
  const digest = (i: number): string => digestOf(`blob ${i}`);
  for (let i = 0; i < all; i++) hub.content.set(`/v2/library/app/blobs/${digest(i)}`, () => undefined);
  const socket = connect(Number(cache.port), cache.hostname);
  socket.write(
    Array.from({ length: all }, (_, i) => `HEAD /v2/library/app/blobs/${digest(i)} HTTP/1.1\r\nHost: x\r\n\r\n`).join(
      '',
    ),
  );
  await expect.poll(() => hub.asked.length).toBe(most);
  await new Promise((resolve) => setTimeout(resolve, 300));
  expect(hub.asked.length).toBe(most);
  // After it disconnects, other clients are answered.
  socket.destroy();
  fill();
  await expect.poll(async () => (await ask(cache.origin, '/v2/library/app/manifests/1')).status).toBe(200);
});

test('the token of a registry is requested for pull only, and not sent to the host of a redirect', async () => {
  await using storage = await startHub();
  stands.set('storage.test', new URL(storage.origin).port);
  const seen: (string | undefined)[] = [];
  const path = `/v2/library/app/blobs/${digestOf(BLOB)}`;
  hub.content.set(path, (request, response) => {
    seen.push(request.headers.authorization);
    if (request.headers.authorization !== 'Bearer t0ken')
      return void response
        .writeHead(401, {
          'www-authenticate': `Bearer realm="${hub.origin}/token",service="hub",scope="repository:library/app:push"`,
        })
        .end();
    response.writeHead(307, { location: 'https://storage.test/there' }).end();
  });
  hub.content.set('/token?service=hub&scope=repository%3Alibrary%2Fapp%3Apull', '{"token":"t0ken","expires_in":300}');
  storage.content.set('/there', (request, response) => {
    seen.push(request.headers.authorization);
    response.end(BLOB);
  });
  expect(await ask(await startCache(), path)).toMatchObject({ status: 200, text: BLOB });
  expect(seen).toEqual([undefined, 'Bearer t0ken', undefined]);
});

test('a redirect to an address without TLS is not followed', async () => {
  await using storage = await startHub();
  const path = `/v2/library/app/blobs/${digestOf(BLOB)}`;
  hub.content.set(path, (_request, response) => response.writeHead(307, { location: `${storage.origin}/x` }).end());
  expect(await ask(await startCache(), path)).toMatchObject({ status: 502 });
  expect(storage.asked).toEqual([]);
});

test('a registry that sends too slowly is given up', async () => {
  let send = (): boolean => false;
  hub.content.set(`/v2/library/app/blobs/${digestOf(BLOB)}`, (_request, response) => {
    response.writeHead(200);
    send = () => response.write('x');
    send();
  });
  const asked = ask(await startCache(), `/v2/library/app/blobs/${digestOf(BLOB)}`);
  await expect.poll(() => bytesIn('new')).toBe(1);
  nowMs += 61_000;
  send();
  await expect.poll(() => readdirSync(join(dir, 'new'))).toEqual([]);
  expect((await asked).text).not.toBe(BLOB);
});

test('the number of stored names and tags is limited', async () => {
  const store = openImageStore(dir, 1e9, { notes: 600 });
  for (let i = 0; i < 1100; i++) {
    await store.learn(`https://r.test/repository-${i}`, { digest: digestOf(BLOB), type: '', bytes: 1 });
    await store.setTag('https://r.test/app', `tag-${i}`, { digest: digestOf(BLOB), checkedAtMs: 0 });
  }
  expect(readdirSync(join(dir, 'known')).length + readdirSync(join(dir, 'tags')).length).toBeLessThan(600 + 500 + 2);
  expect(store.tag('https://r.test/app', 'tag-1099')).toEqual({ digest: digestOf(BLOB), checkedAtMs: 0 });
  expect(store.tag('https://r.test/app', 'tag-0')).toBe(null);
});

test('an interrupted download can be resumed', async () => {
  fill();
  const cache = await startCache();
  const path = `/v2/library/app/blobs/${digestOf(BLOB)}`;
  await ask(cache, path);
  expect(await ask(cache, path, 'GET', { range: 'bytes=8-' })).toMatchObject({ status: 206, text: BLOB.slice(8) });
});

test('a layer larger than the whole cache is cut off, and nothing of it is kept', async () => {
  const large = 'x'.repeat(300_000);
  const path = `/v2/library/app/blobs/${digestOf(large)}`;
  hub.content.set(path, large);
  const cache = await startCache({ 'docker.io': hub.origin }, 100_000);
  expect(await ask(cache, path)).toMatchObject({ broken: true });
  expect(['blobs', 'new'].flatMap((name) => readdirSync(join(dir, name)))).toEqual([]);
});

test('simultaneous layers share the room of the cache, and an interrupted one frees its room', async () => {
  const parts = Array.from({ length: 8 }, (_, i) => String(i).repeat(60_000));
  const release: (() => void)[] = [];
  for (const part of parts)
    hub.content.set(`/v2/library/app/blobs/${digestOf(part)}`, (_request, response) => {
      response.writeHead(200).write(part.slice(0, 50_000));
      release.push(() => response.end(part.slice(50_000)));
    });
  const cache = await startCache(undefined, 260_000);
  const left = join(dir, 'new', 'left');
  writeFileSync(left, 'x'.repeat(250_000));
  utimesSync(left, 1000, 1000);
  const asked: Promise<Answer>[] = [];
  // The first five layers fill the cache; there is no room for the rest.
  for (const part of parts) {
    const answer = ask(cache, `/v2/library/app/blobs/${digestOf(part)}`);
    asked.push(answer);
    if (asked.length > 5) expect(await answer).toMatchObject({ broken: true });
    else while (bytesIn('new') !== asked.length * 50_000) await new Promise((resolve) => setTimeout(resolve, 10));
  }
  expect(bytesIn('new')).toBe(250_000);
  for (const go of release) go();
  // Together the rests need more room than there is, so at most one layer fails.
  const whole = (await Promise.all(asked)).filter(({ broken }) => !broken);
  expect(whole.length).toBeGreaterThanOrEqual(4);
  expect([bytesIn('new'), bytesIn('blobs') <= 260_000]).toEqual([0, true]);
});

function bytesIn(name: string): number {
  return readdirSync(join(dir, name))
    .map((file) => statSync(join(dir, name, file), { throwIfNoEntry: false })?.size ?? 0)
    .reduce((sum, bytes) => sum + bytes, 0);
}

test('the number of stored layers is limited even if they are tiny', async () => {
  const store = openImageStore(dir, 10_000);
  for (let i = 0; i < 10_010; i++) writeFileSync(join(dir, 'blobs', String(i)), '');
  const writer = await store.begin(digestOf(BLOB));
  await writer.write(Buffer.from(BLOB));
  expect(await writer.finish()).toBe(true);
  expect(readdirSync(join(dir, 'blobs')).length).toBeLessThanOrEqual(10_000);
});

test('the least recently used layer is removed when there is no room', async () => {
  const parts = ['first', 'second', 'third'].map((name) => name.padEnd(1000, '.'));
  for (const part of parts) hub.content.set(`/v2/library/app/blobs/${digestOf(part)}`, part);
  const cache = await startCache(undefined, 2500);
  const file = (part: string): string => join(dir, 'blobs', digestOf(part).slice('sha256:'.length));
  for (const [at, part] of parts.entries()) {
    await ask(cache, `/v2/library/app/blobs/${digestOf(part)}`);
    if (existsSync(file(part))) utimesSync(file(part), 1000 + at, 1000 + at);
  }
  expect(parts.map((part) => existsSync(file(part)))).toEqual([false, true, true]);
});
