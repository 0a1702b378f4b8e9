// server/routes/route.ts: one route of the API: its path, its schemas and the function behind it. Router and OpenAPI document are both
// generated from routes.
import type { z } from 'zod';
import type { TaskIndex } from '../live/task-index.ts';
import type { CheckRuns } from '../check-runs.ts';
import type { ChangeCache } from '../change-cache.ts';
import type { KnownProjects } from '../live/projects.ts';
import type { HostContext } from '../../run/host-context.ts';
import type { StoredTask } from '../../store/tasks.ts';
import { Refusal } from './refusal.ts';

/** The dependencies of every route. */
export interface Api {
  readonly context: HostContext;
  readonly version: string;
  readonly taskIndex: TaskIndex;
  readonly knownProjects: KnownProjects;
  readonly changes: ChangeCache;
  readonly checks: CheckRuns;
  /** The number to continue from after a snapshot that is read now. */
  seq(topic: 'tasks' | 'projects'): number;
  /** Finds a task by its full ID. With `work`, an interrupted run is recovered first, because its changes are needed. */
  task(id: string, options?: { work: boolean }): Promise<StoredTask>;
  /** Serializes requests for one task: two must not work in the same repository at once. */
  inTurn<T>(task: string, act: () => Promise<T>): Promise<T>;
}

export interface Call<Body> {
  /** The IDs in the path, by name. */
  readonly ids: Readonly<Record<string, string>>;
  readonly query: URLSearchParams;
  readonly body: Body;
}

export interface Route {
  readonly method: 'GET' | 'POST' | 'DELETE';
  /** As in OpenAPI: /api/tasks/{task}. */
  readonly path: string;
  readonly summary: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly body?: z.ZodType;
  readonly answer: z.ZodType;
  readonly run: (api: Api, call: Call<never>) => Promise<unknown>;
}

/** Ties the types of body and answer to their schemas. */
export function route<Body extends z.ZodType, Answer extends z.ZodType>(given: {
  method: Route['method'];
  path: string;
  summary: string;
  query?: Readonly<Record<string, string>>;
  body?: Body;
  answer: Answer;
  run: (api: Api, call: Call<z.output<Body>>) => Promise<z.input<Answer>>;
}): Route {
  return given;
}

// Paths consist of fixed words and IDs; an ID is never a path.

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
