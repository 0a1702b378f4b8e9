// server/routes/network.ts: connection attempts of tasks, network rules, and disk usage.
import { ApiNetwork, ApiStorage, ChangeRule, Cleaned, RuleChanged } from '../../protocol/api/api.ts';
import { cleanUp, planCleanup } from '../../housekeeping/cleanup.ts';
import { sizeOf } from '../../queries/list.ts';
import { changeRules, type RuleScope } from '../../network/change-rules.ts';
import { viewNetwork } from '../../network/view.ts';
import type { HostContext } from '../../run/host-context.ts';
import { taskPaths } from '../../store/layout.ts';
import { Refusal } from './refusal.ts';
import { route, type Route } from './route.ts';

export const NETWORK_ROUTES: readonly Route[] = [
  route({
    method: 'GET',
    path: '/api/network',
    summary: 'Connection attempts by host, requests that wait for an answer, and the rules',
    query: { project: 'Only this project.', task: 'Only this task.' },
    answer: ApiNetwork,
    async run({ context, knownProjects, task }, { query }) {
      const [project, id] = [query.get('project'), query.get('task')];
      const view = await viewNetwork(context, {
        project: project === null ? null : knownProjects.path(project),
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
    async run({ context, task }, { ids, body }) {
      const stored = await task(ids['task'] ?? '');
      const scope: RuleScope = body.scope === 'run' ? { kind: 'task', name: stored.task.id } : { kind: body.scope };
      return change({ ...context, cwd: stored.task.project }, body, scope);
    },
  }),
  route({
    method: 'POST',
    path: '/api/projects/{project}/network',
    summary: 'Allow or deny a host for this project, or always',
    body: ChangeRule,
    answer: RuleChanged,
    async run({ context, knownProjects }, { ids, body }) {
      if (body.scope === 'run')
        throw new Refusal(400, 'request.invalid', 'The scope "run" needs a task: POST /api/tasks/{task}/network');
      return change({ ...context, cwd: knownProjects.path(ids['project'] ?? '') }, body, { kind: body.scope });
    },
  }),
  route({
    method: 'GET',
    path: '/api/storage',
    summary: 'Disk usage: what can be removed, and what is kept',
    answer: ApiStorage,
    async run({ context }) {
      const { items, kept } = await planCleanup(context, { all: false, olderThanMs: 0 });
      const rows = await Promise.all(
        kept.map(async (row) => ({
          what: row.name,
          why: 'a task with unreviewed changes',
          bytes: await sizeOf(taskPaths(context.stateDir, row.name).root),
          safe: false,
          kept: 'Review it, or delete it with: ags rm',
        })),
      );
      const left = items.map(({ name, why, bytes }) => ({ what: name, why, bytes, safe: true, kept: null }));
      return { items: [...left, ...rows], bytes: await sizeOf(context.stateDir) };
    },
  }),
  route({
    method: 'POST',
    path: '/api/storage/clean',
    summary: 'Remove everything that is safe to remove',
    answer: Cleaned,
    async run({ context, taskIndex }) {
      const { items } = await planCleanup(context, { all: false, olderThanMs: 0 });
      const done = await cleanUp(items);
      await taskIndex.look('all');
      return { removed: done.length, bytes: done.reduce((sum, { bytes }) => sum + bytes, 0) };
    },
  }),
];

async function change(context: HostContext, { action, rule }: ChangeRule, scope: RuleScope): Promise<{ text: string }> {
  const { reached, file } = await changeRules(context, action, [rule], scope);
  const done = action === 'allow' ? 'allowed' : 'denied';
  if (file === null) return { text: `${rule} is ${done} in ${reached.join(', ')}, until it ends.` };
  const running = reached.length === 0 ? '' : ` Running sandboxes have it at once: ${reached.join(', ')}.`;
  const pending = file.trust === 'pending' ? ' ags.yaml asks for more that you have not approved: ags trust' : '';
  return { text: `${rule} is ${done} in ${file.label}.${running}${pending}` };
}
