// server/routes/route.ts: one route of the API: its path, its schemas and the function behind it. Router and OpenAPI document are both
// generated from routes.
import type { z } from 'zod';
import type { TaskIndex } from '../live/task-index.ts';
import type { CheckRuns } from '../check-runs.ts';
import type { ChangeCache } from '../change-cache.ts';
import type { KnownProjects } from '../live/projects.ts';
import type { HostContext } from '../../run/host-context.ts';
import type { StoredTask } from '../../store/tasks.ts';

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
