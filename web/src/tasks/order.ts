// web/src/tasks/order.ts: groups and sorts the task list: tasks that need the user first, attempts at one goal together.
import type { ApiTask } from '../../../src/protocol/api/api.ts';

export type Group = ApiTask['group'];

const GROUPS: readonly { group: Group; title: string }[] = [
  { group: 'needs-you', title: 'Needs you' },
  { group: 'look', title: 'Ready or failed' },
  { group: 'running', title: 'Running' },
  { group: 'queued', title: 'Queued' },
  { group: 'rest', title: 'Done' },
];

export type Line =
  | {
      readonly kind: 'title';
      readonly key: string;
      readonly group: Group;
      readonly title: string;
      readonly count: number;
    }
  | { readonly kind: 'attempts'; readonly key: string; readonly tasks: readonly ApiTask[]; readonly open: boolean }
  | { readonly kind: 'task'; readonly key: string; readonly task: ApiTask; readonly nested: boolean };

export function linesOf(tasks: readonly ApiTask[], open: ReadonlySet<string>): readonly Line[] {
  const sorted = tasks.toSorted((a, b) => rank(a) - rank(b) || b.startedAtMs - a.startedAtMs || (a.id < b.id ? -1 : 1));
  const together = new Map<string, ApiTask[]>();
  for (const task of sorted)
    if (task.attemptOf !== null) together.set(task.attemptOf, [...(together.get(task.attemptOf) ?? []), task]);
  const drawn = new Set<string>();
  return GROUPS.flatMap(({ group, title }) => {
    const lines = sorted
      .filter((task) => task.group === group)
      .flatMap((task): Line[] => {
        const attempts = task.attemptOf === null ? [] : (together.get(task.attemptOf) ?? []);
        if (attempts.length < 2) return [{ kind: 'task', key: task.id, task, nested: false }];
        // Attempts are listed together in the group of the most urgent one.
        const key = `attempts ${task.attemptOf}`;
        if (drawn.has(key)) return [];
        drawn.add(key);
        const inOrder = attempts.toSorted((a, b) => (a.name < b.name ? -1 : 1));
        const isOpen = open.has(key);
        return [
          { kind: 'attempts', key, tasks: inOrder, open: isOpen },
          ...(isOpen ? inOrder.map((one): Line => ({ kind: 'task', key: one.id, task: one, nested: true })) : []),
        ];
      });
    const count = tasks.filter((task) => task.group === group).length;
    return lines.length === 0 ? [] : [{ kind: 'title', key: `title ${group}`, group, title, count }, ...lines];
  });
}

const rank = ({ group }: ApiTask): number => GROUPS.findIndex((one) => one.group === group);

/** Filters such as `is:merged agent:codex host:cdn` apply to rows here; other words are searched by the server. */
export function parseSearch(q: string): { words: string; fits: (task: ApiTask) => boolean } {
  const parts = q.split(/\s+/).filter((part) => part !== '');
  const about = (name: string): string[] =>
    parts.filter((part) => part.startsWith(`${name}:`)).map((part) => part.slice(name.length + 1).toLowerCase());
  const [is, agent, host] = [about('is'), about('agent'), about('host')];
  return {
    words: parts.filter((part) => !/^(is|agent|host):/.test(part)).join(' '),
    fits: (task) =>
      is.every((state) => task.state === state || task.group === state || (state === 'live' && task.live)) &&
      agent.every((name) => task.agent?.toLowerCase().includes(name) === true) &&
      host.every((name) => task.blockedHosts.some((blocked) => blocked.includes(name))),
  };
}
