// nested-docker/image-cache/cache.ts: what engines inside sandboxes pull images from: a registry that can only be read, and that fetches what it does
// not have. Shared by all tasks through the store; apart from the gateway, whose rules are about other things.
// Invariants: only registries that were named are asked; what is handed out has the digest that was asked for, to the last byte;
// what a tag means is asked again after a while.
import { createHash } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { once } from 'node:events';
import { pipeline } from 'node:stream/promises';
import { DOCKER_HUB, isDigest, readQuestion, type Question } from './request.ts';
import type { ImageStore, Part, Tag } from './store.ts';
import { readBytes, UpstreamError, type RegistryClient } from './upstream.ts';

export interface CacheInput {
  readonly store: ImageStore;
  readonly client: RegistryClient;
  /** By the name that images begin with: where it is. */
  readonly registries: ReadonlyMap<string, string>;
  readonly now: () => number;
  /** One line for each part that was fetched from outside, or refused. */
  readonly log: (line: { readonly image: string; readonly what: string }) => void;
}

/** As long as a tag is believed without asking. */
const TAG_MS = 60_000;
/** Questions of one task that are being answered. */
export const MOST_AT_WORK = 64;
const MOST_MANIFEST = 8 * 1024 * 1024;
/** So much at least comes in such a time. */
const PACE_MS = 60_000;
const PACE_BYTES = 64 * 1024;
const OCTETS = 'application/octet-stream';
/** Others may wait for what somebody fetches: so long, in all, it waits for him to take it. */
const PATIENCE_MS = 1000;
/** Whatever else a client says that it reads makes no difference to what a registry has. */
const MANIFEST_TYPES = [
  ...['manifest.v2', 'manifest.list.v2'].map((kind) => `application/vnd.docker.distribution.${kind}+json`),
  ...['manifest.v1', 'index.v1'].map((kind) => `application/vnd.oci.image.${kind}+json`),
  '*/*',
];

/** Give it connections: `server.emit('connection', socket)`. */
export function createImageCache(input: CacheInput): Server {
  const { store, client, registries } = input;

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const asked = readQuestion(request.method ?? '', request.url ?? '');
    request.resume();
    response.setHeader('docker-distribution-api-version', 'registry/2.0');
    if (asked.kind === 'ping') return void response.writeHead(200, { 'content-type': 'application/json' }).end('{}');
    if (asked.kind === 'wrong') return refuse(response, asked.status, asked.code, asked.message);
    const { question } = asked;
    const image = `${question.registry}/${question.repository}`;
    const origin = registries.get(question.registry);
    if (origin === undefined) {
      input.log({ image, what: 'refused: no registry of this task' });
      return refuse(response, 403, 'DENIED', notAllowed(question.registry));
    }
    const gone = new AbortController();
    response.on('close', () => gone.abort());
    const visit: Visit = { question, origin, image, request, response, signal: gone.signal };
    try {
      await (question.kind === 'blob' ? giveBlob(visit) : giveManifest(visit));
    } catch (error) {
      if (!(error instanceof UpstreamError)) throw error;
      input.log({ image, what: `failed: ${error.message}` });
      // What has begun can only be broken off: nobody may take it for whole.
      if (response.headersSent) return void response.destroy();
      refuse(response, 502, 'UNKNOWN', `${question.registry} could not be asked: ${error.message}.`);
    }
  }

  async function giveBlob(visit: Visit): Promise<void> {
    const { question, response } = visit;
    const digest = question.reference;
    const known = store.part(placeOf(visit), digest);
    if (known !== null) return giveKept(visit, known);
    if (visit.request.method === 'HEAD') return giveHead(visit);
    const kept = await store.alone(lockOf(visit, digest), async () => {
      if (response.destroyed) return null;
      return store.part(placeOf(visit), digest) ?? (await ofSameRegistry(visit)) ?? fetchBlob(visit);
    });
    if (kept === null) return;
    if ('given' in kept) await pipeline(store.read(digest, kept.given), response).catch(() => undefined);
    else await giveKept(visit, kept);
  }

  /** What a registry has given for one repository it need not give again for another that has it too. Other registries prove nothing by saying so. */
  async function ofSameRegistry(visit: Visit): Promise<Part | null> {
    const digest = visit.question.reference;
    const part = store.part(visit.origin, digest);
    if (part === null) return null;
    const head = await ask(visit, 'HEAD', `blobs/${digest}`);
    head.destroy();
    if (head.statusCode !== 200) return null;
    await store.learn(placeOf(visit), part);
    return part;
  }

  /**
   * Through to the client while it is kept, but for the last piece, which waits until the whole is seen to be right. Who is too slow gets
   * what he has not been given from the store, later. null: he has had everything, or a refusal.
   */
  async function fetchBlob(visit: Visit): Promise<{ readonly given: number } | null> {
    const { question, response } = visit;
    const digest = question.reference;
    const from = await askUpstream(visit, 'GET', `blobs/${digest}`);
    if (from === null) return null;
    const length = from.headers['content-length'];
    const writer = await store.begin(digest);
    const keepsUp = patienceWith(visit);
    let held: Uint8Array | null = null;
    const isQuick = paceOf(input.now);
    let [bytes, given, behind] = [0, 0, false];
    try {
      response.writeHead(200, { ...headersOf({ digest, type: OCTETS }), ...(length && { 'content-length': length }) });
      for await (const chunk of from as AsyncIterable<Uint8Array>) {
        await writer.write(chunk);
        bytes += chunk.length;
        // Who never comes to an end takes up room that others need.
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
      input.log({ image: visit.image, what: `refused: ${digest} is something else than it says` });
      response.destroy();
      return null;
    }
    for (const place of [placeOf(visit), visit.origin]) await store.learn(place, { digest, type: OCTETS, bytes });
    input.log({ image: visit.image, what: `fetched ${digest}` });
    if (behind) return { given };
    response.end(held ?? undefined);
    return null;
  }

  async function giveManifest(visit: Visit): Promise<void> {
    const { reference } = visit.question;
    const digest = isDigest(reference) ? reference : await digestOfTag(visit);
    const known = digest === null ? null : store.part(placeOf(visit), digest);
    return known === null ? fetchManifest(visit) : giveKept(visit, known);
  }

  /** One from the future was noted by a clock that has moved back since. */
  function isFresh({ checkedAtMs }: Tag): boolean {
    const age = input.now() - checkedAtMs;
    return age >= 0 && age < TAG_MS;
  }

  /** null: it is not known, or means something else by now. */
  async function digestOfTag(visit: Visit): Promise<string | null> {
    const place = placeOf(visit);
    const name = tagName(visit);
    const tag = store.tag(place, name);
    if (tag === null) return null;
    if (isFresh(tag)) return tag.digest;
    const head = await ask(visit, 'HEAD', `manifests/${visit.question.reference}`);
    head.destroy();
    if (head.statusCode !== 200 || head.headers['docker-content-digest'] !== tag.digest) return null;
    await store.setTag(place, name, { ...tag, checkedAtMs: input.now() });
    return tag.digest;
  }

  async function fetchManifest(visit: Visit): Promise<void> {
    const { reference } = visit.question;
    const what = isDigest(reference) ? reference : `${placeOf(visit)} ${tagName(visit)}`;
    // Given when others may go on: nobody waits for who does not take it.
    const part = await store.alone(lockOf(visit, what), () => manifestFromUpstream(visit));
    if (part !== null) await giveKept(visit, part);
  }

  /** null: it was refused, and so is the client. */
  async function manifestFromUpstream(visit: Visit): Promise<Part | null> {
    const { reference } = visit.question;
    const tag = isDigest(reference) ? null : store.tag(placeOf(visit), tagName(visit));
    const digest = isDigest(reference) ? reference : tag !== null && isFresh(tag) ? tag.digest : null;
    const meanwhile = digest === null ? null : store.part(placeOf(visit), digest);
    if (meanwhile !== null) return meanwhile;
    const from = await askUpstream(visit, 'GET', `manifests/${reference}`);
    if (from === null) return null;
    const body = await readBytes(from, MOST_MANIFEST);
    const found = `sha256:${createHash('sha256').update(body).digest('hex')}`;
    const said = isDigest(reference) ? reference : (from.headers['docker-content-digest'] ?? found);
    if (found !== said) {
      input.log({ image: visit.image, what: `refused: ${String(said)} is something else than it says` });
      throw new UpstreamError(`what it gave is not ${String(said)}`);
    }
    const writer = await store.begin(found);
    await writer.write(body);
    await writer.finish();
    const part = { digest: found, type: from.headers['content-type'] ?? OCTETS, bytes: body.length };
    await store.learn(placeOf(visit), part);
    if (!isDigest(reference))
      await store.setTag(placeOf(visit), tagName(visit), { digest: found, checkedAtMs: input.now() });
    input.log({ image: visit.image, what: `fetched ${reference}` });
    return part;
  }

  async function giveKept({ request, response }: Visit, part: Part): Promise<void> {
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
    // Whoever goes away in the middle has had what he wanted.
    await pipeline(store.read(part.digest, start), response).catch(() => undefined);
  }

  async function giveHead(visit: Visit): Promise<void> {
    const head = await askUpstream(visit, 'HEAD', `blobs/${visit.question.reference}`);
    if (head === null) return;
    head.destroy();
    const length = head.headers['content-length'];
    visit.response
      .writeHead(200, {
        ...headersOf({ digest: visit.question.reference, type: OCTETS }),
        ...(length && { 'content-length': length }),
      })
      .end();
  }

  /** null: it was refused, and so is the client. */
  async function askUpstream(visit: Visit, method: 'GET' | 'HEAD', path: string): Promise<IncomingMessage | null> {
    const found = await ask(visit, method, path);
    const status = found.statusCode ?? 0;
    if (status === 200) return found;
    found.destroy();
    const { registry } = visit.question;
    input.log({ image: visit.image, what: `not given: ${status}` });
    if (status === 429) refuse(visit.response, 429, 'TOOMANYREQUESTS', `${registry} wants to be asked less often.`);
    else if ([401, 403, 404].includes(status))
      refuse(visit.response, 404, 'MANIFEST_UNKNOWN', `${registry} has no such image for everybody (${status}).`);
    else refuse(visit.response, 502, 'UNKNOWN', `${registry} answered with ${status}.`);
    return null;
  }

  function ask({ question, origin, request, signal }: Visit, method: 'GET' | 'HEAD', path: string) {
    return client.ask({
      method,
      origin,
      repository: question.repository,
      path,
      accept: question.kind === 'manifest' ? acceptOf(request) : [],
      signal,
    });
  }

  let atWork = 0;
  const server = createServer((request, response) => {
    // Over one connection any number of questions may come at once, and each may dial.
    if (atWork >= MOST_AT_WORK) {
      request.resume();
      return refuse(response, 503, 'TOOMANYREQUESTS', 'The cache of images has enough to do.');
    }
    atWork += 1;
    answer(request, response)
      .catch((error: unknown) => {
        input.log({ image: '', what: `failed: ${error instanceof Error ? error.message : String(error)}` });
        if (response.headersSent) response.destroy();
        else refuse(response, 500, 'UNKNOWN', 'The cache of images failed.');
      })
      .finally(() => (atWork -= 1));
  });
  // An engine tries TLS first. There is none here, and no way through.
  server.on('connect', (request, socket) => {
    const host = (request.url ?? '').replace(/:\d+$/, '');
    const text = registries.has(host) ? 'Without TLS, please.' : notAllowed(host);
    socket.on('error', () => undefined);
    socket.end(`HTTP/1.1 403 ${text.replaceAll(/[^ -~]/g, '?')}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n`);
  });
  return server;
}

interface Visit {
  readonly question: Question;
  readonly origin: string;
  readonly image: string;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly signal: AbortSignal;
}

function placeOf({ origin, question }: Visit): string {
  return `${origin}/${question.repository}`;
}

/** What a tag stands for depends on what the client can read. */
function tagName({ question, request }: Visit): string {
  return `${question.reference} ${acceptOf(request).join()}`;
}

/** What one registry is slow to give keeps nobody waiting who asks another. */
function lockOf({ origin }: Visit, what: string): string {
  return `sha256:${createHash('sha256').update(`${origin} ${what}`).digest('hex')}`;
}

/** Told of each piece: does it come at a pace at which it comes to an end? */
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

/** Asked whenever he has not taken everything: does he in time? He has so long for all of it, and not for each piece. */
function patienceWith({ response, signal }: Visit): () => Promise<boolean> {
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
    ? 'Images of Docker Hub are not allowed in this sandbox (docker.registries).'
    : `Images of ${registry} are not allowed in this sandbox; whoever started it can name it in docker.registries.`;
}
