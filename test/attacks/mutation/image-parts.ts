// test/attacks/mutation/image-parts.ts: attempts against the image cache of nested Docker: by its clients, and by registries that answer
// as they like. See parts.ts.
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { connect, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { ask, digestOf, startHub, type Hub } from '../../nested-docker/image-cache/hub.ts';
import type { Use } from './mutated-source.ts';
import type { PartAttempt } from './parts.ts';

const HOSTILE_QUESTIONS: readonly (readonly [method: string, target: string])[] = [
  ...['POST', 'PUT', 'PATCH', 'DELETE'].map((method) => [method, '/v2/a/b/manifests/1'] as const),
  ['GET', 'http://user:password@host/v2/a/manifests/1'],
  ['GET', '/v2/a/../b/manifests/1'],
  ['GET', '/v2/_catalog'],
  ['GET', '/v2/a/b/manifests/..%2f'],
  ['GET', '/v2/a/b/blobs/latest'],
  ['GET', `/v2/a/b/manifests/${'x'.repeat(129)}`],
  ['GET', `/v2/${'a'.repeat(256)}/manifests/1`],
  ['GET', '/v2/a/b/manifests/1#x'],
];

const questions: PartAttempt = async (use) => {
  const { readImageRequest } = await use(() => import('../../../src/nested-docker/image-cache/request.ts'));
  if (readImageRequest('GET', '/v2/a/b/manifests/1').kind !== 'question') throw new Error('nothing can be asked');
  return HOSTILE_QUESTIONS.filter(([method, target]) => readImageRequest(method, target).kind === 'question').map(
    ([method, target]) => `${method} ${target.slice(0, 50)}`,
  );
};

/** A cache with its own clock over a shared store. Hubs stand in for hosts with TLS. */
async function startCache(
  use: Use,
  dir: string,
  given: { registries: Record<string, string>; mostBytes?: number; now?: () => number; stands?: Record<string, Hub> },
): Promise<AsyncDisposable & { readonly at: string }> {
  const { createImageCache } = await use(() => import('../../../src/nested-docker/image-cache/cache.ts'));
  const { openImageStore } = await use(() => import('../../../src/nested-docker/image-cache/store.ts'));
  const { createRegistryClient } = await use(() => import('../../../src/nested-docker/image-cache/upstream.ts'));
  const portOf = (url: URL): number => Number(new URL(given.stands?.[url.hostname]?.origin ?? url).port);
  const server = createImageCache({
    store: openImageStore(join(dir, 'store'), given.mostBytes ?? 1e9),
    client: createRegistryClient({ open: async (url) => connect({ host: '127.0.0.1', port: portOf(url) }) }),
    registries: new Map(Object.entries(given.registries)),
    now: given.now ?? Date.now,
    log: () => undefined,
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    at: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
    },
  };
}

const BLOB = 'a layer of an image';
const MANIFEST = '{"schemaVersion":2}';
const blobPath = (repository: string, content = BLOB): string => `/v2/${repository}/blobs/${digestOf(content)}`;
const manifestPath = (reference: string): string => `/v2/library/app/manifests/${reference}`;
const wrong = (what: string, isWrong: boolean): string[] => (isWrong ? [what] : []);

/** Attempts to get images of others, forged ones and endless ones. */
const images: PartAttempt = async (use, dir) => {
  await using hub = await startHub();
  await using cache = await startCache(use, dir, { registries: { 'docker.io': hub.origin } });
  hub.content.set(blobPath('secret/app'), BLOB);
  if ((await ask(cache.at, blobPath('secret/app'))).text !== BLOB) throw new Error('nothing is given');
  const elsewhere = await ask(cache.at, blobPath('other/app'));
  const asked = hub.asked.length;
  const stranger = await ask(cache.at, 'http://ghcr.io/v2/a/b/manifests/1');
  const strangers = hub.asked.length - asked;
  const lie = 'x'.repeat(300_000);
  hub.content.set(blobPath('library/app', 'what was asked for'), lie);
  const forged = await ask(cache.at, blobPath('library/app', 'what was asked for'));
  hub.content.set(manifestPath(digestOf(MANIFEST)), '{"other":true}');
  hub.content.set(manifestPath('forged'), (_request, response) =>
    response.writeHead(200, { 'docker-content-digest': digestOf(BLOB) }).end(MANIFEST),
  );
  const manifests = await Promise.all([digestOf(MANIFEST), 'forged'].map((one) => ask(cache.at, manifestPath(one))));
  hub.content.set(manifestPath('long'), ' '.repeat(9 * 2 ** 20));
  const long = await ask(cache.at, manifestPath('long'));
  // The cache of another task, with another registry under the same name.
  await using other = await startHub();
  await using beside = await startCache(use, dir, { registries: { 'docker.io': other.origin } });
  // The other registry claims a blob that it cannot deliver.
  other.content.set(blobPath('secret/app'), (request, response) =>
    response.writeHead(request.method === 'HEAD' ? 200 : 404, { 'content-length': BLOB.length }).end(),
  );
  const foreign = await ask(beside.at, blobPath('secret/app'));
  return [
    ...wrong('a layer of another image', elsewhere.text.includes(BLOB)),
    ...wrong('a layer of another registry', foreign.text.includes(BLOB)),
    ...wrong('a registry that is not configured', stranger.status === 200 || strangers > 0),
    ...wrong('a layer that is another', !forged.broken || forged.text.length === lie.length),
    ...wrong('a layer that is another is kept', readdirSync(join(dir, 'store/new')).length > 0),
    ...wrong(
      'a manifest that is another',
      manifests.some(({ status }) => status === 200),
    ),
    ...wrong('a manifest without an end', long.status === 200),
  ];
};

/** Attempts against how long the cache believes an answer, and how much it keeps. */
const keeping: PartAttempt = async (use, dir) => {
  let nowMs = 1_000_000;
  await using hub = await startHub();
  const registries = { 'docker.io': hub.origin };
  await using cache = await startCache(use, dir, { registries, mostBytes: 2500, now: () => nowMs });
  hub.content.set(manifestPath('1'), MANIFEST);
  const tag = async (accept = ''): Promise<string> => (await ask(cache.at, manifestPath('1'), 'GET', { accept })).text;
  await tag();
  hub.content.set(manifestPath('1'), '{"newer":true}');
  nowMs += 61_000;
  const later = await tag();
  hub.content.set(manifestPath('1'), MANIFEST);
  nowMs -= 600_000;
  const before = await tag();
  for (let i = 0; i < 5; i++) await tag(`application/x-${i}`);
  const parts = ['first', 'second', 'third'].map((name) => name.padEnd(1000, '.'));
  for (const part of [...parts, 'x'.repeat(3000)]) hub.content.set(blobPath('library/app', part), part);
  for (const part of parts) await ask(cache.at, blobPath('library/app', part));
  const large = await ask(cache.at, blobPath('library/app', 'x'.repeat(3000)));
  return [
    ...wrong('a tag is believed for ever', later === MANIFEST),
    ...wrong('a tag is believed when the clock has moved back', before !== MANIFEST),
    ...wrong('a note for every word', readdirSync(join(dir, 'store/tags')).length > 1),
    ...wrong('more is kept than there is room', readdirSync(join(dir, 'store/blobs')).length > 4),
    ...wrong('a layer that is larger than everything', !large.broken),
  ];
};

type Answering = (request: IncomingMessage, response: ServerResponse) => void;

/** Attempts by a registry that redirects and asks for credentials. */
const registries: PartAttempt = async (use, dir) => {
  await using hub = await startHub();
  await using storage = await startHub();
  const stands = { 'storage.test': storage };
  await using cache = await startCache(use, dir, { registries: { 'docker.io': hub.origin }, stands });
  const path = blobPath('library/app');
  const seen: (string | undefined)[] = [];
  const wants = (challenge: string, then: Answering): void =>
    void hub.content.set(path, (request, response) => {
      if (request.headers.authorization !== undefined) return then(request, response);
      response.writeHead(401, { 'www-authenticate': challenge }).end();
    });
  const give: Answering = (_request, response) => void response.end(BLOB);
  const token = '/token?scope=repository%3Alibrary%2Fapp%3Apull';
  hub.content.set(token, `{"token":"t0ken","expires_in":0}${' '.repeat(100_000)}`);
  wants(`Bearer realm="${hub.origin}/token"`, give);
  const long = await ask(cache.at, path);
  hub.content.set(token, '{"token":"t0ken","expires_in":0}');
  storage.content.set('/there', (request, response) => {
    seen.push(request.headers.authorization);
    response.writeHead(404).end();
  });
  wants(`Bearer realm="${hub.origin}/token",scope="repository:library/app:push"`, (_request, response) =>
    response.writeHead(307, { location: 'https://storage.test/there' }).end(),
  );
  await ask(cache.at, path);
  const scopes = hub.asked.filter((line) => line.includes('push'));
  const before = storage.asked.length;
  for (const challenge of [`Bearer realm="${storage.origin}/token"`, `Basic realm="${hub.origin}/token"`]) {
    wants(challenge, give);
    await ask(cache.at, path);
  }
  const asked = hub.asked.filter((line) => line.includes('/token')).length;
  hub.content.set(path, (_request, response) => response.writeHead(307, { location: `${storage.origin}/x` }).end());
  await ask(cache.at, path);
  const begun = hub.asked.length;
  hub.content.set(path, (_request, response) => response.writeHead(307, { location: path }).end());
  await ask(cache.at, path);
  return [
    ...wrong('a token without an end', long.status === 200),
    ...wrong(
      'a token for another host',
      seen.some((one) => one !== undefined),
    ),
    ...wrong('a token for writing', scopes.length > 0),
    ...wrong('an address without TLS', storage.asked.length > before),
    ...wrong('a password', asked > 2),
    ...wrong('from one address to the next', hub.asked.length - begun > 10),
  ];
};

export const IMAGE_PARTS = { questions, images, keeping, registries } as const satisfies Record<string, PartAttempt>;
