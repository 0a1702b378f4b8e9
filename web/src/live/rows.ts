// web/src/live/rows.ts: keeps the cached lists of tasks and projects as the server says they are.
// Invariants: however many messages come, the page is drawn a few times a second at most; an answer that was under way while messages came
// does not take back what they said.
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

export function keepRows(live: Live, client: QueryClient): void {
  const changed = new Map<string, ApiTask | null>();
  // What was said last of each, and when.
  const told = { tasks: new Map<string, Told<ApiTask | null>>(), projects: new Map<string, Told<ApiProject>>() };
  let timer: ReturnType<typeof setTimeout> | undefined;
  let begun = false;
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
    for (const map of Object.values(told)) map.clear();
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
      told.tasks.set(message.data.id, { seq: message.seq, row });
    }
    timer ??= setTimeout(draw, DRAW_EVERY_MS);
  };
  const onProject = (message: LiveMessage): void => {
    if (message.type === 'reset') reread();
    else if (message.seq <= projectsSeq) return;
    projectsSeq = message.seq;
    if (message.type !== 'project') return;
    const { data } = message;
    told.projects.set(data.id, { seq: message.seq, row: data });
    client.setQueryData<ApiProjects>(keys.projects, (old) =>
      old === undefined ? old : { ...old, projects: withProject(old.projects, data) },
    );
  };

  // Before anybody sees it: a state that is older for a moment would look like one more change.
  client.setQueryDefaults(keys.tasks, {
    structuralSharing: (old, read) => {
      if (!isAnswer<ApiTasks>(read, 'tasks')) return replaceEqualDeep(old, read);
      const newer = after(told.tasks, read.seq);
      return replaceEqualDeep(old, { ...read, tasks: merged(read.tasks, new Map(newer)) });
    },
  });
  client.setQueryDefaults(keys.projects, {
    structuralSharing: (old, read) => {
      if (!isAnswer<ApiProjects>(read, 'projects')) return replaceEqualDeep(old, read);
      const newer = after(told.projects, read.seq);
      return replaceEqualDeep(old, {
        ...read,
        projects: newer.reduce((all, [, project]) => withProject(all, project), read.projects),
      });
    },
  });

  // The lists first, then what came after them: nothing is missed in between.
  const begin = async (): Promise<void> => {
    const [tasks, projects] = await Promise.all([
      client.ensureQueryData(tasksQuery),
      client.ensureQueryData(projectsQuery),
    ]);
    if (begun) return;
    begun = true;
    tasksSeq = tasks.seq;
    projectsSeq = projects.seq;
    live.subscribe('tasks', { after: () => tasksSeq, message: onTask });
    live.subscribe('projects', { after: () => projectsSeq, message: onProject });
  };
  // Without a server there is nothing yet: the page says so, and it begins when there is one.
  const tryToBegin = (): void => void begin().catch(() => undefined);
  tryToBegin();
  live.onReturn(() => (begun ? reread() : tryToBegin()));
}

/** And not what somebody has picked from one, which is shared in the same way. */
function isAnswer<Answer>(data: unknown, list: keyof Answer): data is Answer {
  return typeof data === 'object' && data !== null && list in data;
}

interface Told<Row> {
  readonly seq: number;
  readonly row: Row;
}

function after<Row>(told: ReadonlyMap<string, Told<Row>>, seq: number): [string, Row][] {
  return [...told].filter(([, one]) => one.seq > seq).map(([id, { row }]) => [id, row]);
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
