// client/client.ts: a typed client of the API for TypeScript programs. It needs nothing but fetch.
//   const ags = createClient({ url: 'http://127.0.0.1:7780', key });
//   const { tasks } = await ags.startTasks({ project, goals: [{ text: 'Fix the date tests' }], agents: ['claude'] });
//   for await (const message of ags.live([`task:${tasks[0]}`])) …
import type { ApiChecks, ChecksStopped } from '../protocol/api/checks.ts';
import type { ApiConfiguredServices, ApiServiceLog, ApiServices } from '../protocol/api/services.ts';
import type {
  AddProject,
  ApiAbout,
  ApiBranches,
  ApiError,
  ApiEvents,
  ApiNetwork,
  ApiProject,
  ApiProjects,
  ApiStorage,
  ApiTaskDetail,
  ApiTasks,
  ChangeRule,
  Cleaned,
  ForkTask,
  LiveMessage,
  Removed,
  ResolveTask,
  RuleChanged,
  Sent,
  Started,
  StartTasks,
  Stopped,
  Withdrawn,
} from '../protocol/api/api.ts';
import type {
  ApiChanges,
  ApiConflict,
  ApiFileText,
  Applied,
  ApplyTask,
  Merged,
  MergeTask,
  StartChecks,
  Undone,
} from '../protocol/api/review.ts';

/** An error response of the server, with a hint for the user. */
export class ApiRefusal extends Error {
  readonly status: number;
  readonly code: string;
  readonly hint: string | undefined;
  readonly details: unknown;

  constructor(status: number, { error }: ApiError) {
    super(error.message);
    this.name = 'ApiRefusal';
    this.status = status;
    this.code = error.code;
    this.hint = error.hint;
    this.details = error.details;
  }
}

export interface ClientOptions {
  /** "http://127.0.0.1:7780"; in the page itself: "". */
  readonly url: string;
  /** The content of <state directory>/server/key; a browser uses its session instead. */
  readonly key?: string;
  readonly fetch?: typeof fetch;
}

export type Client = ReturnType<typeof createClient>;

export function createClient({ url, key, fetch: ask = fetch }: ClientOptions) {
  const authorization: Record<string, string> = key === undefined ? {} : { Authorization: `Bearer ${key}` };

  async function call<T>(method: string, path: string, body?: unknown): Promise<T> {
    const response = await ask(`${url}${path}`, {
      method,
      headers: { ...authorization, ...(body === undefined ? {} : { 'Content-Type': 'application/json' }) },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    if (!response.ok) throw await refusal(response);
    return (await response.json()) as T;
  }

  const task = (id: string, rest = ''): string => `/api/tasks/${encodeURIComponent(id)}${rest}`;
  const project = (id: string, rest = ''): string => `/api/projects/${encodeURIComponent(id)}${rest}`;

  return {
    about: () => call<ApiAbout>('GET', '/api/about'),
    projects: () => call<ApiProjects>('GET', '/api/projects'),
    addProject: (wish: AddProject) => call<ApiProject>('POST', '/api/projects', wish),
    removeProject: (id: string) => call<object>('DELETE', project(id)),
    branches: (id: string) => call<ApiBranches>('GET', project(id, '/branches')),
    projectServices: (id: string) => call<ApiConfiguredServices>('GET', project(id, '/services')),
    tasks: (of: { project?: string; q?: string } = {}) => call<ApiTasks>('GET', `/api/tasks${query(of)}`),
    startTasks: (wish: StartTasks) => call<Started>('POST', '/api/tasks', wish),
    task: (id: string) => call<ApiTaskDetail>('GET', task(id)),
    removeTask: (id: string, wish: { force?: boolean } = {}) => call<Removed>('DELETE', task(id), wish),
    events: (id: string, of: { after?: number; before?: number; limit?: number } = {}) =>
      call<ApiEvents>('GET', `${task(id, '/events')}${query(of)}`),
    send: (id: string, text: string) => call<Sent>('POST', task(id, '/send'), { text }),
    withdraw: (id: string, message: string) => call<Withdrawn>('DELETE', task(id, `/messages/${message}`)),
    stop: (id: string, force = false) => call<Stopped>('POST', task(id, '/stop'), { force }),
    continue: (id: string) => call<Sent>('POST', task(id, '/continue')),
    restart: (id: string) => call<Started>('POST', task(id, '/restart')),
    fork: (id: string, wish: ForkTask) => call<Started>('POST', task(id, '/fork'), wish),
    resolve: (id: string, wish: ResolveTask = {}) => call<Started>('POST', task(id, '/resolve'), wish),
    changes: (id: string) => call<ApiChanges>('GET', task(id, '/changes')),
    file: (id: string, changes: string, n: number, how: { space?: 'hide'; since?: string } = {}) =>
      call<ApiFileText>('GET', `${task(id, `/changes/${encodeURIComponent(changes)}/files/${n}`)}${query(how)}`),
    conflict: (id: string, changes: string, n: number, of: { into?: string } = {}) =>
      call<ApiConflict>(
        'GET',
        `${task(id, `/changes/${encodeURIComponent(changes)}/files/${n}/conflict`)}${query(of)}`,
      ),
    merge: (id: string, wish: MergeTask) => call<Merged>('POST', task(id, '/merge'), wish),
    checks: (id: string) => call<ApiChecks>('GET', task(id, '/checks')),
    startChecks: (id: string, wish: StartChecks) => call<ApiChecks>('POST', task(id, '/checks'), wish),
    stopChecks: (id: string) => call<ChecksStopped>('POST', task(id, '/checks/stop')),
    services: (id: string) => call<ApiServices>('GET', task(id, '/services')),
    serviceLog: (id: string, service: string) =>
      call<ApiServiceLog>('GET', task(id, `/services/${encodeURIComponent(service)}/log`)),
    apply: (id: string, wish: ApplyTask) => call<Applied>('POST', task(id, '/apply'), wish),
    undo: (id: string) => call<Undone>('POST', task(id, '/undo')),
    network: (of: { project?: string; task?: string } = {}) => call<ApiNetwork>('GET', `/api/network${query(of)}`),
    changeRule: (of: { task: string } | { project: string }, wish: ChangeRule) =>
      call<RuleChanged>('POST', 'task' in of ? task(of.task, '/network') : project(of.project, '/network'), wish),
    storage: () => call<ApiStorage>('GET', '/api/storage'),
    clean: () => call<Cleaned>('POST', '/api/storage/clean'),

    /** Live messages from now on, or after the given numbers, until the signal. It does not reconnect. */
    async *live(
      topics: readonly string[],
      options: { after?: readonly (number | null)[]; signal?: AbortSignal } = {},
    ): AsyncGenerator<LiveMessage> {
      const after = options.after?.map((place) => place ?? '-').join('.');
      const response = await ask(
        `${url}/api/events${query({ topics: topics.join(','), ...(after === undefined ? {} : { after }) })}`,
        { headers: authorization, ...(options.signal === undefined ? {} : { signal: options.signal }) },
      );
      if (!response.ok || response.body === null) throw await refusal(response);
      for await (const block of blocks(response.body)) {
        const data = block.split('\n').find((line) => line.startsWith('data: '));
        if (data !== undefined) yield JSON.parse(data.slice('data: '.length)) as LiveMessage;
      }
    },
  };
}

async function refusal(response: Response): Promise<ApiRefusal> {
  const body = (await response.json().catch(() => null)) as ApiError | null;
  return new ApiRefusal(response.status, body ?? { error: { code: 'unknown', message: response.statusText } });
}

function query(values: Readonly<Record<string, string | number | undefined>>): string {
  const given = Object.entries(values).flatMap(([name, value]) =>
    value === undefined ? [] : [`${name}=${encodeURIComponent(value)}`],
  );
  return given.length === 0 ? '' : `?${given.join('&')}`;
}

/** Splits a stream of events at empty lines. */
async function* blocks(body: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let held = '';
  for await (const piece of body as unknown as AsyncIterable<Uint8Array>) {
    held += decoder.decode(piece, { stream: true });
    const parts = held.split('\n\n');
    held = parts.pop() ?? '';
    yield* parts;
  }
}
