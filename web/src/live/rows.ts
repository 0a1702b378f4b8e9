// web/src/live/rows.ts: applies live messages to the cached lists of tasks and projects.
// Invariants: the page redraws at most a few times a second; a response that was on its way while messages arrived never
// overwrites them with older state.
import { replaceEqualDeep, type QueryClient } from '@tanstack/react-query';
import type {
  ApiProject,
  ApiProjects,
  ApiTask,
  ApiTaskDetail,
  ApiTasks,
  LiveMessage,
} from '../../../src/protocol/api/api.ts';
import { keys, projectsQuery, tasksQuery } from '../api/queries.ts';
import type { Live } from './socket.ts';

const DRAW_EVERY_MS = 200;

export function syncRows(live: Live, client: QueryClient): void {
  const changed = new Map<string, ApiTask | null>();
  // The last message about each row, with its sequence number.
  const pushed = { tasks: new Map<string, Pushed<ApiTask | null>>(), projects: new Map<string, Pushed<ApiProject>>() };
  let timer: ReturnType<typeof setTimeout> | undefined;
  let subscribed = false;
  let tasksSeq = 0;
  let projectsSeq = 0;

  const draw = (): void => {
    timer = undefined;
    client.setQueryData<ApiTasks>(keys.tasks, (old) =>
      old === undefined ? old : { ...old, tasks: merged(old.tasks, changed) },
    );
    for (const [id, row] of changed)
      client.setQueryData<ApiTaskDetail>(keys.task(id), (old) =>
        old === undefined || row === null ? old : { ...old, ...row },
      );
    changed.clear();
  };
  const reread = (): void => {
    for (const map of Object.values(pushed)) map.clear();
    void client.invalidateQueries({ queryKey: keys.tasks });
    void client.invalidateQueries({ queryKey: keys.projects });
  };

  const onTask = (message: LiveMessage): void => {
    if (message.type === 'reset') reread();
    else if (message.seq <= tasksSeq) return;
    tasksSeq = message.seq;
    if (message.type === 'task' || message.type === 'task-gone') {
      const row = message.type === 'task' ? message.data : null;
      changed.set(message.data.id, row);
      pushed.tasks.set(message.data.id, { seq: message.seq, row });
    }
    timer ??= setTimeout(draw, DRAW_EVERY_MS);
  };
  const onProject = (message: LiveMessage): void => {
    if (message.type === 'reset') reread();
    else if (message.seq <= projectsSeq) return;
    projectsSeq = message.seq;
    if (message.type !== 'project') return;
    const { data } = message;
    pushed.projects.set(data.id, { seq: message.seq, row: data });
    client.setQueryData<ApiProjects>(keys.projects, (old) =>
      old === undefined ? old : { ...old, projects: withProject(old.projects, data) },
    );
  };

  // Merge before the data reaches the cache: even a brief older state would be shown and announced as a change.
  client.setQueryDefaults(keys.tasks, {
    structuralSharing: (old, read) => {
      if (!isAnswer<ApiTasks>(read, 'tasks')) return replaceEqualDeep(old, read);
      const newer = after(pushed.tasks, read.seq);
      return replaceEqualDeep(old, { ...read, tasks: merged(read.tasks, new Map(newer)) });
    },
  });
  client.setQueryDefaults(keys.projects, {
    structuralSharing: (old, read) => {
      if (!isAnswer<ApiProjects>(read, 'projects')) return replaceEqualDeep(old, read);
      const newer = after(pushed.projects, read.seq);
      return replaceEqualDeep(old, {
        ...read,
        projects: newer.reduce((all, [, project]) => withProject(all, project), read.projects),
      });
    },
  });

  // Read the lists first, then subscribe from their sequence numbers: no change is missed in between.
  const subscribe = async (): Promise<void> => {
    const [tasks, projects] = await Promise.all([
      client.ensureQueryData(tasksQuery),
      client.ensureQueryData(projectsQuery),
    ]);
    if (subscribed) return;
    subscribed = true;
    tasksSeq = tasks.seq;
    projectsSeq = projects.seq;
    live.subscribe('tasks', { after: () => tasksSeq, message: onTask });
    live.subscribe('projects', { after: () => projectsSeq, message: onProject });
  };
  // If the server is unreachable, the connection banner says so; onReturn tries again.
  const trySubscribe = (): void => void subscribe().catch(() => undefined);
  trySubscribe();
  live.onReturn(() => (subscribed ? reread() : trySubscribe()));
}

/** False for selected parts of a response, which pass through structuralSharing as well. */
function isAnswer<Answer>(data: unknown, list: keyof Answer): data is Answer {
  return typeof data === 'object' && data !== null && list in data;
}

interface Pushed<Row> {
  readonly seq: number;
  readonly row: Row;
}

function after<Row>(pushed: ReadonlyMap<string, Pushed<Row>>, seq: number): [string, Row][] {
  return [...pushed].filter(([, one]) => one.seq > seq).map(([id, { row }]) => [id, row]);
}

function withProject(projects: readonly ApiProject[], project: ApiProject): ApiProject[] {
  return projects.some(({ id }) => id === project.id)
    ? projects.map((one) => (one.id === project.id ? project : one))
    : [...projects, project];
}

function merged(tasks: readonly ApiTask[], changed: ReadonlyMap<string, ApiTask | null>): ApiTask[] {
  const known = new Set(tasks.map(({ id }) => id));
  const kept = tasks.flatMap((task) => {
    const next = changed.get(task.id);
    return next === undefined ? [task] : next === null ? [] : [next];
  });
  const fresh = [...changed.values()].flatMap((task) => (task !== null && !known.has(task.id) ? [task] : []));
  return [...fresh, ...kept];
}
