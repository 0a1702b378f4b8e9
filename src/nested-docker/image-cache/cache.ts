// nested-docker/image-cache/cache.ts: a read-only pull-through cache for nested Docker: a registry that fetches what it does not have. All
// tasks share it through the store. It is separate from the gateway, whose rules are about other things.
// Invariants: only named registries are asked; every served part has the requested digest, to the last byte; a tag is resolved again
// after a while.
import { createHash } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { once } from 'node:events';
import { pipeline } from 'node:stream/promises';
import { DOCKER_HUB } from '../../protocol/network.ts';
import { isDigest, readImageRequest, type ImageRequest } from './request.ts';
import type { ImageStore, Part, Tag } from './store.ts';
import { readBytes, UpstreamError, type RegistryClient } from './upstream.ts';

export interface CacheInput {
  readonly store: ImageStore;
  readonly client: RegistryClient;
  /** Registry URLs by the first part of image names. */
  readonly registries: ReadonlyMap<string, string>;
  readonly now: () => number;
  /** Called for each part that was fetched from a registry, or refused. */
  readonly log: (line: { readonly image: string; readonly what: string }) => void;
}

/** How long a resolved tag is used without asking the registry again. */
const TAG_MS = 60_000;
/** Requests of one task that are handled at once. */
export const MOST_AT_WORK = 64;
const MOST_MANIFEST = 8 * 1024 * 1024;
/** The minimum speed of a registry: PACE_BYTES in PACE_MS. */
const PACE_MS = 60_000;
const PACE_BYTES = 64 * 1024;
const OCTETS = 'application/octet-stream';
/** While a fetch waits for a slow client, others wait for the fetch: this long in total. */
const PATIENCE_MS = 1000;
/** Other types that a client accepts make no difference to what a registry sends. */
const MANIFEST_TYPES = [
  ...['manifest.v2', 'manifest.list.v2'].map((kind) => `application/vnd.docker.distribution.${kind}+json`),
  ...['manifest.v1', 'index.v1'].map((kind) => `application/vnd.oci.image.${kind}+json`),
  '*/*',
];

/** Give it connections: `server.emit('connection', socket)`. */
export function createImageCache(input: CacheInput): Server {
  const { store, client, registries } = input;

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const asked = readImageRequest(request.method ?? '', request.url ?? '');
    request.resume();
    response.setHeader('docker-distribution-api-version', 'registry/2.0');
    if (asked.kind === 'ping') return void response.writeHead(200, { 'content-type': 'application/json' }).end('{}');
    if (asked.kind === 'wrong') return refuse(response, asked.status, asked.code, asked.message);
    const { wanted } = asked;
    const image = `${wanted.registry}/${wanted.repository}`;
    const origin = registries.get(wanted.registry);
    if (origin === undefined) {
      input.log({ image, what: 'refused: registry not configured for this task' });
      return refuse(response, 403, 'DENIED', notAllowed(wanted.registry));
    }
    const gone = new AbortController();
    response.on('close', () => gone.abort());
    const connection: Connection = { wanted, origin, image, request, response, signal: gone.signal };
    try {
      await (wanted.kind === 'blob' ? giveBlob(connection) : giveManifest(connection));
    } catch (error) {
      if (!(error instanceof UpstreamError)) throw error;
      input.log({ image, what: `failed: ${error.message}` });
      // A started response can only be cut off, so that the client does not take it for complete.
      if (response.headersSent) return void response.destroy();
      refuse(response, 502, 'UNKNOWN', `Cannot fetch from ${wanted.registry}: ${error.message}.`);
    }
  }

  async function giveBlob(connection: Connection): Promise<void> {
    const { wanted, response } = connection;
    const digest = wanted.reference;
    const known = store.part(placeOf(connection), digest);
    if (known !== null) return giveKept(connection, known);
    if (connection.request.method === 'HEAD') return giveHead(connection);
    const kept = await store.alone(lockOf(connection, digest), async () => {
      if (response.destroyed) return null;
      return store.part(placeOf(connection), digest) ?? (await ofSameRegistry(connection)) ?? fetchBlob(connection);
    });
    if (kept === null) return;
    if ('given' in kept) await pipeline(store.read(digest, kept.given), response).catch(() => undefined);
    else await giveKept(connection, kept);
  }

  /** A blob that the same registry served for another repository need not be fetched again if this repository has it too. Other registries' answers prove nothing. */
  async function ofSameRegistry(connection: Connection): Promise<Part | null> {
    const digest = connection.wanted.reference;
    const part = store.part(connection.origin, digest);
    if (part === null) return null;
    const head = await ask(connection, 'HEAD', `blobs/${digest}`);
    head.destroy();
    if (head.statusCode !== 200) return null;
    await store.learn(placeOf(connection), part);
    return part;
  }

  /**
   * Streams to the client while storing, except for the last chunk, which waits until the digest is verified. A client that is too slow
   * gets the rest from the store later. null: the client has received everything, or a refusal.
   */
  async function fetchBlob(connection: Connection): Promise<{ readonly given: number } | null> {
    const { wanted, response } = connection;
    const digest = wanted.reference;
    const from = await askUpstream(connection, 'GET', `blobs/${digest}`);
    if (from === null) return null;
    const length = from.headers['content-length'];
    const writer = await store.begin(digest);
    const keepsUp = patienceWith(connection);
    let held: Uint8Array | null = null;
    const isQuick = paceOf(input.now);
    let [bytes, given, behind] = [0, 0, false];
    try {
      response.writeHead(200, { ...headersOf({ digest, type: OCTETS }), ...(length && { 'content-length': length }) });
      for await (const chunk of from as AsyncIterable<Uint8Array>) {
        await writer.write(chunk);
        bytes += chunk.length;
        // An endless response would take up space that others need.
        if (!isQuick(chunk.length)) throw new UpstreamError('it is too slow');
        if (held !== null && !behind) {
          given += held.length;
          behind = !response.write(held) && !(await keepsUp());
        }
        held = chunk;
      }
    } catch (error) {
      await writer.abandon();
      throw error instanceof UpstreamError ? error : new UpstreamError('it broke off', { cause: error });
    }
    if (!(await writer.finish())) {
      input.log({ image: connection.image, what: `refused: ${digest} does not have that digest` });
      response.destroy();
      return null;
    }
    for (const place of [placeOf(connection), connection.origin])
      await store.learn(place, { digest, type: OCTETS, bytes });
    input.log({ image: connection.image, what: `fetched ${digest}` });
    if (behind) return { given };
    response.end(held ?? undefined);
    return null;
  }

  async function giveManifest(connection: Connection): Promise<void> {
    const { reference } = connection.wanted;
    const digest = isDigest(reference) ? reference : await digestOfTag(connection);
    const known = digest === null ? null : store.part(placeOf(connection), digest);
    return known === null ? fetchManifest(connection) : giveKept(connection, known);
  }

  /** A time in the future was recorded by a clock that has since been set back. */
  function isFresh({ checkedAtMs }: Tag): boolean {
    const age = input.now() - checkedAtMs;
    return age >= 0 && age < TAG_MS;
  }

  /** null: the tag is unknown, or has moved. */
  async function digestOfTag(connection: Connection): Promise<string | null> {
    const place = placeOf(connection);
    const name = tagName(connection);
    const tag = store.tag(place, name);
    if (tag === null) return null;
    if (isFresh(tag)) return tag.digest;
    const head = await ask(connection, 'HEAD', `manifests/${connection.wanted.reference}`);
    head.destroy();
    if (head.statusCode !== 200 || head.headers['docker-content-digest'] !== tag.digest) return null;
    await store.setTag(place, name, { ...tag, checkedAtMs: input.now() });
    return tag.digest;
  }

  async function fetchManifest(connection: Connection): Promise<void> {
    const { reference } = connection.wanted;
    const what = isDigest(reference) ? reference : `${placeOf(connection)} ${tagName(connection)}`;
    // Served after the lock is released, so that a slow client delays no one else.
    const part = await store.alone(lockOf(connection, what), () => manifestFromUpstream(connection));
    if (part !== null) await giveKept(connection, part);
  }

  /** null: the registry refused, and the client has been answered. */
  async function manifestFromUpstream(connection: Connection): Promise<Part | null> {
    const { reference } = connection.wanted;
    const tag = isDigest(reference) ? null : store.tag(placeOf(connection), tagName(connection));
    const digest = isDigest(reference) ? reference : tag !== null && isFresh(tag) ? tag.digest : null;
    const meanwhile = digest === null ? null : store.part(placeOf(connection), digest);
    if (meanwhile !== null) return meanwhile;
    const from = await askUpstream(connection, 'GET', `manifests/${reference}`);
    if (from === null) return null;
    const body = await readBytes(from, MOST_MANIFEST);
    const found = `sha256:${createHash('sha256').update(body).digest('hex')}`;
    const said = isDigest(reference) ? reference : (from.headers['docker-content-digest'] ?? found);
    if (found !== said) {
      input.log({ image: connection.image, what: `refused: ${String(said)} does not have that digest` });
      throw new UpstreamError(`its answer does not have the digest ${String(said)}`);
    }
    const writer = await store.begin(found);
    await writer.write(body);
    await writer.finish();
    const part = { digest: found, type: from.headers['content-type'] ?? OCTETS, bytes: body.length };
    await store.learn(placeOf(connection), part);
    if (!isDigest(reference))
      await store.setTag(placeOf(connection), tagName(connection), { digest: found, checkedAtMs: input.now() });
    input.log({ image: connection.image, what: `fetched ${reference}` });
    return part;
  }

  async function giveKept({ request, response }: Connection, part: Part): Promise<void> {
    const from = Number(/^bytes=(\d{1,15})-$/.exec(request.headers.range ?? '')?.[1] ?? 0);
    const partly = from > 0 && from < part.bytes;
    const start = partly ? from : 0;
    const range = { 'content-range': `bytes ${start}-${part.bytes - 1}/${part.bytes}` };
    response.writeHead(partly ? 206 : 200, {
      ...headersOf(part),
      'content-length': part.bytes - start,
      'accept-ranges': 'bytes',
      ...(partly && range),
    });
    if (request.method === 'HEAD') return void response.end();
    // A client that disconnects early needs no error.
    await pipeline(store.read(part.digest, start), response).catch(() => undefined);
  }

  async function giveHead(connection: Connection): Promise<void> {
    const head = await askUpstream(connection, 'HEAD', `blobs/${connection.wanted.reference}`);
    if (head === null) return;
    head.destroy();
    const length = head.headers['content-length'];
    connection.response
      .writeHead(200, {
        ...headersOf({ digest: connection.wanted.reference, type: OCTETS }),
        ...(length && { 'content-length': length }),
      })
      .end();
  }

  /** null: the registry refused, and the client has been answered. */
  async function askUpstream(
    connection: Connection,
    method: 'GET' | 'HEAD',
    path: string,
  ): Promise<IncomingMessage | null> {
    const found = await ask(connection, method, path);
    const status = found.statusCode ?? 0;
    if (status === 200) return found;
    found.destroy();
    const { registry } = connection.wanted;
    input.log({ image: connection.image, what: `not given: ${status}` });
    if (status === 429)
      refuse(connection.response, 429, 'TOOMANYREQUESTS', `${registry} limits the rate of requests; try again later.`);
    else if ([401, 403, 404].includes(status))
      refuse(connection.response, 404, 'MANIFEST_UNKNOWN', `${registry} has no such public image (${status}).`);
    else refuse(connection.response, 502, 'UNKNOWN', `${registry} answered with ${status}.`);
    return null;
  }

  function ask({ wanted, origin, request, signal }: Connection, method: 'GET' | 'HEAD', path: string) {
    return client.ask({
      method,
      origin,
      repository: wanted.repository,
      path,
      accept: wanted.kind === 'manifest' ? acceptOf(request) : [],
      signal,
    });
  }

  let atWork = 0;
  const server = createServer((request, response) => {
    // One connection can carry any number of requests at once, and each may open connections to a registry.
    if (atWork >= MOST_AT_WORK) {
      request.resume();
      return refuse(response, 503, 'TOOMANYREQUESTS', 'The image cache is busy.');
    }
    atWork += 1;
    answer(request, response)
      .catch((error: unknown) => {
        input.log({ image: '', what: `failed: ${error instanceof Error ? error.message : String(error)}` });
        if (response.headersSent) response.destroy();
        else refuse(response, 500, 'UNKNOWN', 'The image cache failed.');
      })
      .finally(() => (atWork -= 1));
  });
  // An engine tries TLS first; this server supports neither TLS nor tunnels.
  server.on('connect', (request, socket) => {
    const host = (request.url ?? '').replace(/:\d+$/, '');
    const text = registries.has(host) ? 'This cache does not support TLS.' : notAllowed(host);
    socket.on('error', () => undefined);
    socket.end(`HTTP/1.1 403 ${text.replaceAll(/[^ -~]/g, '?')}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n`);
  });
  return server;
}

interface Connection {
  readonly wanted: ImageRequest;
  readonly origin: string;
  readonly image: string;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly signal: AbortSignal;
}

function placeOf({ origin, wanted }: Connection): string {
  return `${origin}/${wanted.repository}`;
}

/** The digest of a tag depends on the types that the client accepts. */
function tagName({ wanted, request }: Connection): string {
  return `${wanted.reference} ${acceptOf(request).join()}`;
}

/** Locks are per registry, so that a slow one delays only its own clients. */
function lockOf({ origin }: Connection, what: string): string {
  return `sha256:${createHash('sha256').update(`${origin} ${what}`).digest('hex')}`;
}

/** Counts received bytes and tells whether the registry keeps the minimum speed. */
function paceOf(now: () => number): (bytes: number) => boolean {
  let [sinceMs, seen] = [now(), 0];
  return (bytes) => {
    seen += bytes;
    if (now() - sinceMs < PACE_MS) return true;
    const quick = seen >= PACE_BYTES;
    [sinceMs, seen] = [now(), 0];
    return quick;
  };
}

/** Waits for a slow client to drain. The time limit counts for the whole response, not for each chunk. */
function patienceWith({ response, signal }: Connection): () => Promise<boolean> {
  let leftMs = PATIENCE_MS;
  return async () => {
    const sinceMs = Date.now();
    const late = AbortSignal.timeout(leftMs);
    try {
      await once(response, 'drain', { signal: AbortSignal.any([signal, late]) });
      return true;
    } catch (error) {
      if (!late.aborted || signal.aborted) throw error;
      return false;
    } finally {
      leftMs = Math.max(0, leftMs - (Date.now() - sinceMs));
    }
  };
}

function acceptOf({ headers }: IncomingMessage): string[] {
  const said = (headers.accept ?? '').split(',').map((type) => type.trim());
  return MANIFEST_TYPES.filter((type) => said.includes(type));
}

function headersOf({ digest, type }: Pick<Part, 'digest' | 'type'>): Record<string, string> {
  return { 'content-type': type, 'docker-content-digest': digest, etag: `"${digest}"` };
}

function refuse(response: ServerResponse, status: number, code: string, message: string): void {
  response
    .writeHead(status, { 'content-type': 'application/json' })
    .end(JSON.stringify({ errors: [{ code, message, detail: null }] }));
}

function notAllowed(registry: string): string {
  return registry === DOCKER_HUB || registry === 'registry-1.docker.io'
    ? 'Images from Docker Hub are not allowed in this sandbox (docker.registries).'
    : `Images from ${registry} are not allowed in this sandbox (docker.registries).`;
}
