// web/src/api/client.ts: every request of the page, by name and with its types. The contract is src/protocol/api.ts.
// Invariant: ids alone are in addresses; texts and paths travel in bodies.
import type { z } from 'zod';
import type * as Api from '../../../src/protocol/api.ts';

/** What the server said instead of an answer, in words for people. */
export class ApiFailure extends Error {
  readonly status: number;
  readonly code: string;
  readonly hint: string | null;

  constructor(status: number, code: string, message: string, hint: string | null) {
    super(message);
    this.name = 'ApiFailure';
    this.status = status;
    this.code = code;
    this.hint = hint;
  }
}

type Method = 'GET' | 'POST' | 'DELETE';

async function request<T>(method: Method, path: string, body?: unknown, signal?: AbortSignal): Promise<T> {
  let answer: Response;
  try {
    answer = await fetch(`/api${path}`, {
      method,
      credentials: 'same-origin',
      ...(body === undefined ? {} : { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }),
      ...(signal === undefined ? {} : { signal }),
    });
  } catch (error) {
    if (signal?.aborted === true) throw error;
    throw new ApiFailure(0, 'unreachable', 'The server cannot be reached.', 'Start it again: ags serve');
  }
  const text = await answer.text();
  if (!answer.ok) throw failureOf(answer.status, text);
  return (text === '' ? null : JSON.parse(text)) as T;
}

function failureOf(status: number, text: string): ApiFailure {
  try {
    const { error } = JSON.parse(text) as Api.ApiError;
    return new ApiFailure(status, error.code, error.message, error.hint ?? null);
  } catch {
    return status === 401
      ? new ApiFailure(status, 'signed-out', 'This browser is not signed in.', 'Open the page by: ags web')
      : new ApiFailure(status, 'server', `The server answered ${status}.`, null);
  }
}

const get = async <T>(path: string, signal?: AbortSignal): Promise<T> => request<T>('GET', path, undefined, signal);
const post = async <T>(path: string, body: unknown = {}): Promise<T> => request<T>('POST', path, body);

function query(values: Readonly<Record<string, string | number | null | undefined>>): string {
  const given = Object.entries(values).flatMap(([name, value]) =>
    value === null || value === undefined || value === '' ? [] : [[name, String(value)]],
  );
  return given.length === 0 ? '' : `?${new URLSearchParams(given).toString()}`;
}

export const api = {
  about: async (signal?: AbortSignal) => get<Api.ApiAbout>('/about', signal),
  projects: async (signal?: AbortSignal) => get<Api.ApiProjects>('/projects', signal),
  addProject: async (what: Api.AddProject) => post<Api.ApiProject>('/projects', what),
  removeProject: async (project: string) => request<null>('DELETE', `/projects/${project}`),
  branches: async (project: string, signal?: AbortSignal) =>
    get<Api.ApiBranches>(`/projects/${project}/branches`, signal),

  tasks: async (filter: { project?: string; q?: string } = {}, signal?: AbortSignal) =>
    get<Api.ApiTasks>(`/tasks${query(filter)}`, signal),
  task: async (task: string, signal?: AbortSignal) => get<Api.ApiTaskDetail>(`/tasks/${task}`, signal),
  startTasks: async (what: Api.StartTasks) => post<Api.Started>('/tasks', what),
  removeTask: async (task: string, force: boolean) => request<Api.Removed>('DELETE', `/tasks/${task}`, { force }),
  events: async (task: string, range: { after?: number; before?: number; limit?: number }, signal?: AbortSignal) =>
    get<Api.ApiEvents>(`/tasks/${task}/events${query(range)}`, signal),

  send: async (task: string, text: string) => post<Api.Sent>(`/tasks/${task}/send`, { text }),
  stop: async (task: string, force = false) => post<Api.Stopped>(`/tasks/${task}/stop`, { force }),
  continueTask: async (task: string) => post<unknown>(`/tasks/${task}/continue`),
  restart: async (task: string) => post<unknown>(`/tasks/${task}/restart`),
  fork: async (task: string, what: Api.ForkTask) => post<Api.Started>(`/tasks/${task}/fork`, what),

  changes: async (task: string, signal?: AbortSignal) => get<Api.ApiChanges>(`/tasks/${task}/changes`, signal),
  file: async (task: string, changes: string, n: number, signal?: AbortSignal) =>
    get<Api.ApiFileText>(`/tasks/${task}/changes/${changes}/files/${n}`, signal),
  merge: async (task: string, what: Api.MergeTask) => post<Api.Merged>(`/tasks/${task}/merge`, what),
  apply: async (task: string, what: z.input<typeof Api.ApplyTask>) => post<Api.Applied>(`/tasks/${task}/apply`, what),
  undo: async (task: string) => post<z.infer<typeof Api.Undone>>(`/tasks/${task}/undo`),

  network: async (filter: { project?: string; task?: string }, signal?: AbortSignal) =>
    get<Api.ApiNetwork>(`/network${query(filter)}`, signal),
  changeTaskRule: async (task: string, change: Api.ChangeRule) =>
    post<z.infer<typeof Api.RuleChanged>>(`/tasks/${task}/network`, change),
  changeProjectRule: async (project: string, change: Api.ChangeRule) =>
    post<z.infer<typeof Api.RuleChanged>>(`/projects/${project}/network`, change),

  storage: async (signal?: AbortSignal) => get<Api.ApiStorage>('/storage', signal),
  clean: async () => post<z.infer<typeof Api.Cleaned>>('/storage/clean'),
};

/** Where a WebSocket of this server is. */
export function socketAddress(path: string): string {
  const url = new URL(path, location.href);
  url.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:';
  return url.href;
}
