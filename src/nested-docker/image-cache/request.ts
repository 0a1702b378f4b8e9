// nested-docker/image-cache/request.ts: parses an untrusted request to the image cache. Pure.
// Invariant: anything that is not exactly one of the forms below is refused; no part of a request becomes a path.
import { DOCKER_HUB } from '../../protocol/network.ts';

export interface ImageRequest {
  /** The first part of an image name: docker.io, ghcr.io, registry.corp:5000. */
  readonly registry: string;
  readonly repository: string;
  readonly kind: 'manifest' | 'blob';
  /** sha256:…, or a tag for manifests. */
  readonly reference: string;
}

export type Asked =
  | { readonly kind: 'question'; readonly wanted: ImageRequest }
  /** The API version check, which also asks whether a password is needed. */
  | { readonly kind: 'ping' }
  | { readonly kind: 'wrong'; readonly status: number; readonly code: string; readonly message: string };

/** Engines that use us as a mirror of Docker Hub send a path; those that use us as a proxy send a full URL. */
export function readImageRequest(method: string, target: string): Asked {
  if (method !== 'GET' && method !== 'HEAD')
    return wrong(405, 'UNSUPPORTED', 'This registry is read-only: images can be pulled, not pushed.');
  const parts = TARGET.exec(target);
  if (parts === null) return wrong(400, 'UNSUPPORTED', 'Invalid request target.');
  const [, host, path = '', query = ''] = parts;
  if (path === '/v2/' || path === '/v2') return { kind: 'ping' };
  const found = PATH.exec(path);
  if (found === null) return wrong(404, 'UNSUPPORTED', 'This registry has only manifests and blobs.');
  const [, repository = '', what = '', reference = ''] = found;
  const kind = what === 'manifests' ? 'manifest' : 'blob';
  if (repository.length > MOST_NAME || !(kind === 'blob' ? DIGEST : REFERENCE).test(reference))
    return wrong(400, 'NAME_INVALID', 'Invalid image name.');
  const registry = host ?? new URLSearchParams(query).get('ns') ?? DOCKER_HUB;
  return { kind: 'question', wanted: { registry: canonical(registry), repository, kind, reference } };
}

const MOST_NAME = 255;
const TARGET = /^(?:http:\/\/([a-z0-9.-]+(?::\d{1,5})?))?(\/[^?#]*)(?:\?([^#]*))?$/i;
// The expression is unambiguous: with two ways to match, a long name that fails at its end would backtrack exponentially.
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
