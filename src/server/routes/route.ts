// server/routes/route.ts: what one address of the API is: its schemas, and the verb behind it. The router and the OpenAPI document are both
// made of these.
import type { z } from 'zod';
import type { Board } from '../live/task-index.ts';
import type { CheckRuns } from '../check-runs.ts';
import type { ChangeCache } from '../change-cache.ts';
import type { Places } from '../live/projects.ts';
import type { World } from '../../run/host-context.ts';
import type { StoredTask } from '../../store/tasks.ts';

/** What a route works with. */
export interface Desk {
  readonly world: World;
  readonly version: string;
  readonly board: Board;
  readonly places: Places;
  readonly changes: ChangeCache;
  readonly checks: CheckRuns;
  /** Where to go on listening after a snapshot that is read now. */
  seq(topic: 'tasks' | 'projects'): number;
  /** By its whole id. `work`: what it did is wanted, so a run that was interrupted is put in order first. */
  task(id: string, options?: { work: boolean }): Promise<StoredTask>;
  /** One after the other for each task: two requests at once must not meet in one repository. */
  inTurn<T>(task: string, act: () => Promise<T>): Promise<T>;
}

export interface Call<Body> {
  /** By the names in the path: ids, nothing else. */
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
  readonly run: (desk: Desk, call: Call<never>) => Promise<unknown>;
}

/** The body is what its schema makes of it, the answer what its schema says. */
export function route<Body extends z.ZodType, Answer extends z.ZodType>(given: {
  method: Route['method'];
  path: string;
  summary: string;
  query?: Readonly<Record<string, string>>;
  body?: Body;
  answer: Answer;
  run: (desk: Desk, call: Call<z.output<Body>>) => Promise<z.input<Answer>>;
}): Route {
  return given;
}
