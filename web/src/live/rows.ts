// web/src/live/rows.ts: keeps the cached lists of tasks and projects as the server says they are.
// Invariants: however many messages come, the page is drawn a few times a second at most; an answer that was under way while messages came
// does not take back what they said.
import type { QueryClient } from '@tanstack/react-query';
import type {
  ApiProject,
  ApiProjects,
  ApiTask,
  ApiTaskDetail,
  ApiTasks,
  LiveMessage,
} from '../../../src/protocol/api.ts';
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

  const correct = (): void => {
    client.setQueryData<ApiTasks>(keys.tasks, (old) => {
      const newer = old === undefined ? [] : after(told.tasks, old.seq);
      return old === undefined || newer.length === 0 ? old : { ...old, tasks: merged(old.tasks, new Map(newer)) };
    });
    client.setQueryData<ApiProjects>(keys.projects, (old) => {
      const newer = old === undefined ? [] : after(told.projects, old.seq);
      return old === undefined || newer.length === 0
        ? old
        : { ...old, projects: newer.reduce((all, [, project]) => withProject(all, project), old.projects) };
    });
  };
  client.getQueryCache().subscribe((event) => {
    if (event.type !== 'updated' || event.action.type !== 'success' || event.action.manual === true) return;
    const [key] = event.query.queryKey as readonly unknown[];
    if (key === keys.tasks[0] || key === keys.projects[0]) setTimeout(correct, 0);
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
