// server/routes/network.ts: what tasks reach and try to reach, the rules, and what the disk holds.
import { ApiNetwork, ApiStorage, ChangeRule, Cleaned, RuleChanged } from '../../protocol/api/api.ts';
import { cleanUp, planCleanup } from '../../housekeeping/cleanup.ts';
import { sizeOf } from '../../queries/list.ts';
import { changeRules, type RuleScope } from '../../network/change-rules.ts';
import { viewNetwork } from '../../network/view.ts';
import type { World } from '../../run/host-context.ts';
import { taskPaths } from '../../store/layout.ts';
import { Refusal } from './refusal.ts';
import { route, type Route } from './route.ts';

export const NETWORK_ROUTES: readonly Route[] = [
  route({
    method: 'GET',
    path: '/api/network',
    summary: 'What was tried, host by host, what waits for a person, and the rules',
    query: { project: 'Of this project.', task: 'Of this task.' },
    answer: ApiNetwork,
    async run({ world, places, task }, { query }) {
      const [project, id] = [query.get('project'), query.get('task')];
      const view = await viewNetwork(world, {
        project: project === null ? null : places.path(project),
        task: id === null ? null : await task(id),
      });
      return {
        attempts: [...view.attempts],
        rules: [...view.rules],
        presets: view.presets.map(({ name, hosts, used }) => ({ name, hosts: [...hosts], used })),
      };
    },
  }),
  route({
    method: 'POST',
    path: '/api/tasks/{task}/network',
    summary: 'Allow or deny a host for this run, its project, or always',
    body: ChangeRule,
    answer: RuleChanged,
    async run({ world, task }, { ids, body }) {
      const stored = await task(ids['task'] ?? '');
      const scope: RuleScope = body.scope === 'run' ? { kind: 'task', name: stored.task.id } : { kind: body.scope };
      return change({ ...world, cwd: stored.task.project }, body, scope);
    },
  }),
  route({
    method: 'POST',
    path: '/api/projects/{project}/network',
    summary: 'Allow or deny a host for this project, or always',
    body: ChangeRule,
    answer: RuleChanged,
    async run({ world, places }, { ids, body }) {
      if (body.scope === 'run') throw new Refusal(400, 'request.invalid', 'A project has no run: name the task.');
      return change({ ...world, cwd: places.path(ids['project'] ?? '') }, body, { kind: body.scope });
    },
  }),
  route({
    method: 'GET',
    path: '/api/storage',
    summary: 'What the disk holds that nobody needs, and what is kept',
    answer: ApiStorage,
    async run({ world }) {
      const { items, kept } = await planCleanup(world, { all: false, olderThanMs: 0 });
      const rows = await Promise.all(
        kept.map(async (row) => ({
          what: row.name,
          why: 'a task with changes that nobody has decided about',
          bytes: await sizeOf(taskPaths(world.stateDir, row.name).root),
          safe: false,
          kept: 'Review it, or throw it away by itself.',
        })),
      );
      const left = items.map(({ name, why, bytes }) => ({ what: name, why, bytes, safe: true, kept: null }));
      return { items: [...left, ...rows], bytes: await sizeOf(world.stateDir) };
    },
  }),
  route({
    method: 'POST',
    path: '/api/storage/clean',
    summary: 'Remove what is safe to remove',
    answer: Cleaned,
    async run({ world, board }) {
      const { items } = await planCleanup(world, { all: false, olderThanMs: 0 });
      const done = await cleanUp(items);
      await board.look('all');
      return { removed: done.length, bytes: done.reduce((sum, { bytes }) => sum + bytes, 0) };
    },
  }),
];

async function change(world: World, { action, rule }: ChangeRule, scope: RuleScope): Promise<{ text: string }> {
  const { reached, file } = await changeRules(world, action, [rule], scope);
  const done = action === 'allow' ? 'allowed' : 'denied';
  if (file === null) return { text: `${rule} is ${done} in ${reached.join(', ')}, until it ends.` };
  const running = reached.length === 0 ? '' : ` Running sandboxes have it at once: ${reached.join(', ')}.`;
  const pending = file.trust === 'pending' ? ' ags.yaml asks for more that you have not approved: ags trust' : '';
  return { text: `${rule} is ${done} in ${file.label}.${running}${pending}` };
}
