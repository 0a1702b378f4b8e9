// server/routes/router.ts: finds the route of a method and path. Paths consist of fixed words and IDs; an ID is never a path.
import type { Route } from './route.ts';
import { Refusal } from './refusal.ts';

export interface Found {
  readonly route: Route;
  readonly ids: Readonly<Record<string, string>>;
}

export function createRouter(routes: readonly Route[]): (method: string, path: string) => Found {
  const known = routes.map((route) => ({ route, words: route.path.split('/') }));
  return (method, path) => {
    const words = path.split('/');
    const fitting = known.flatMap(({ route, words: pattern }) => {
      const ids = match(pattern, words);
      return ids === null ? [] : [{ route, ids }];
    });
    const found = fitting.find(({ route }) => route.method === (method === 'HEAD' ? 'GET' : method));
    if (found !== undefined) return found;
    if (fitting.length > 0)
      throw new Refusal(405, 'request.method', `${method} is not allowed here.`, {
        hint: `Allowed: ${fitting.map(({ route }) => route.method).join(', ')}`,
      });
    throw new Refusal(404, 'request.unknown', 'There is nothing at this address.', { hint: 'See: /api/openapi.json' });
  };
}

const ID = /^[a-z0-9][a-z0-9-]{0,63}$/;

function match(pattern: readonly string[], words: readonly string[]): Record<string, string> | null {
  if (pattern.length !== words.length) return null;
  const ids: Record<string, string> = {};
  for (const [i, part] of pattern.entries()) {
    const word = words[i] ?? '';
    const name = /^\{(\w+)\}$/.exec(part)?.[1];
    if (name === undefined ? part !== word : !ID.test(word)) return null;
    if (name !== undefined) ids[name] = word;
  }
  return ids;
}
