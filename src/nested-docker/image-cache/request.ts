// nested-docker/image-cache/request.ts: what is asked of the cache, out of a request that may say anything. Pure.
// Invariant: whatever is not exactly one of the forms below is refused; no part of it becomes a path.

export interface Question {
  /** As an image's name begins: docker.io, ghcr.io, registry.corp:5000. */
  readonly registry: string;
  readonly repository: string;
  readonly kind: 'manifest' | 'blob';
  /** sha256:…, or of a manifest a tag. */
  readonly reference: string;
}

export type Asked =
  | { readonly kind: 'question'; readonly question: Question }
  /** "Is anybody there, and do I need a password?" */
  | { readonly kind: 'ping' }
  | { readonly kind: 'wrong'; readonly status: number; readonly code: string; readonly message: string };

/** Engines that take us for a mirror of Docker Hub ask by path; for others we are a proxy, and the address is complete. */
export function readQuestion(method: string, target: string): Asked {
  if (method !== 'GET' && method !== 'HEAD')
    return wrong(405, 'UNSUPPORTED', 'Images can be pulled here, and nothing else: nothing can be put in.');
  const parts = TARGET.exec(target);
  if (parts === null) return wrong(400, 'UNSUPPORTED', 'This is not understood.');
  const [, host, path = '', query = ''] = parts;
  if (path === '/v2/' || path === '/v2') return { kind: 'ping' };
  const found = PATH.exec(path);
  if (found === null) return wrong(404, 'UNSUPPORTED', 'There are manifests and blobs here, and nothing else.');
  const [, repository = '', what = '', reference = ''] = found;
  const kind = what === 'manifests' ? 'manifest' : 'blob';
  if (repository.length > MOST_NAME || !(kind === 'blob' ? DIGEST : REFERENCE).test(reference))
    return wrong(400, 'NAME_INVALID', 'This is no name of an image.');
  const registry = host ?? new URLSearchParams(query).get('ns') ?? DOCKER_HUB;
  return { kind: 'question', question: { registry: canonical(registry), repository, kind, reference } };
}

export const DOCKER_HUB = 'docker.io';
const MOST_NAME = 255;
const TARGET = /^(?:http:\/\/([a-z0-9.-]+(?::\d{1,5})?))?(\/[^?#]*)(?:\?([^#]*))?$/i;
// Each text has one way to be read: with two, a long name that fails at its end would take as many steps as there are combinations.
const PATH = /^\/v2\/([a-z0-9]+(?:(?:[._/]|__|-+)[a-z0-9]+)*)\/(manifests|blobs)\/([^/]+)$/;
const DIGEST = /^sha256:[0-9a-f]{64}$/;
const REFERENCE = /^(?:sha256:[0-9a-f]{64}|[A-Za-z0-9_][A-Za-z0-9._-]{0,127})$/;

export function isDigest(reference: string): boolean {
  return DIGEST.test(reference);
}

function canonical(registry: string): string {
  const name = registry.toLowerCase().replace(/:(?:80|443)$/, '');
  return ['index.docker.io', 'registry-1.docker.io', 'registry.hub.docker.com'].includes(name) ? DOCKER_HUB : name;
}

function wrong(status: number, code: string, message: string): Asked {
  return { kind: 'wrong', status, code, message };
}
