// web/src/live/rows.ts: keeps the cached lists of tasks and projects as the server says they are.
// Invariant: however many messages come, the page is drawn a few times a second at most.
import type { QueryClient } from '@tanstack/react-query';
import type { ApiProject, ApiTask, ApiTaskDetail, ApiTasks, LiveMessage } from '../../../src/protocol/api.ts';
import { keys } from '../api/queries.ts';
import type { Live } from './socket.ts';

const DRAW_EVERY_MS = 200;

export function keepRows(live: Live, client: QueryClient): () => void {
  const changed = new Map<string, ApiTask | null>();
  let timer: ReturnType<typeof setTimeout> | undefined;
  let seq: number | null = null;
  let projectsSeq: number | null = null;

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
    void client.invalidateQueries({ queryKey: keys.tasks });
    void client.invalidateQueries({ queryKey: keys.projects });
  };

  const onTask = (message: LiveMessage): void => {
    seq = message.seq;
    if (message.type === 'reset') return reread();
    if (message.type === 'task') changed.set(message.data.id, message.data);
    else if (message.type === 'task-gone') changed.set(message.data.id, null);
    timer ??= setTimeout(draw, DRAW_EVERY_MS);
  };
  const onProject = (message: LiveMessage): void => {
    projectsSeq = message.seq;
    if (message.type !== 'project') return reread();
    const { data } = message;
    client.setQueryData<ApiProject[]>(keys.projects, (old) =>
      old?.some(({ id }) => id === data.id) === true
        ? old.map((project) => (project.id === data.id ? data : project))
        : [...(old ?? []), data],
    );
  };

  const ends = [
    live.subscribe('tasks', { after: () => seq, message: onTask }),
    live.subscribe('projects', { after: () => projectsSeq, message: onProject }),
    live.onReturn(reread),
  ];
  return () => {
    clearTimeout(timer);
    for (const end of ends) end();
  };
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
