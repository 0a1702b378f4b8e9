// server/routes/checks.ts: run a project's checks on selected changes of a task.
import { StartChecks } from '../../protocol/api/review.ts';
import { ApiChecks, ChecksStopped } from '../../protocol/api/checks.ts';
import { readBoundedLog } from '../../store/bounded-log.ts';
import { checkLogPath, readChecks } from '../../store/checks.ts';
import type { StoredTask } from '../../store/tasks.ts';
import { suggestionsFor } from '../../merge/check-suggestions.ts';
import { mergeRules } from '../../merge/checks.ts';
import { stopChecks } from '../../agent-run/stop-checks.ts';
import type { HostContext } from '../../run/host-context.ts';
import { route, type Route } from './route.ts';
import { inTurns, treeRequest } from './chosen.ts';

/** The number of bytes sent from the end of each check's output. */
const OUTPUT_BYTES = 64 * 1024;

export const CHECK_ROUTES: readonly Route[] = [
  route({
    method: 'GET',
    path: '/api/tasks/{task}/checks',
    summary: 'The configured checks and their last results, with the end of their output',
    answer: ApiChecks,
    run: async (api, { ids }) => apiChecks(api.context, await api.task(ids['task'] ?? '')),
  }),
  route({
    method: 'POST',
    path: '/api/tasks/{task}/checks',
    summary: 'Run the checks on selected files and hunks, in clean sandboxes over the merged tree',
    body: StartChecks,
    answer: ApiChecks,
    run: (api, { ids, body }) =>
      inTurns(api, ids['task'] ?? '', body, async () => {
        const stored = await api.task(ids['task'] ?? '', { work: true });
        await api.checks.start(stored, { ...(await treeRequest(api, stored, body)), commands: body.commands });
        await api.taskIndex.touch(stored.task.id);
        return apiChecks(api.context, stored);
      }),
  }),
  route({
    method: 'POST',
    path: '/api/tasks/{task}/checks/stop',
    summary: 'Stop the running checks of the task, also if another client started them',
    answer: ChecksStopped,
    async run(api, { ids }) {
      const { task, paths } = await api.task(ids['task'] ?? '');
      const stopped = await stopChecks(paths);
      await api.taskIndex.touch(task.id);
      return { stopped };
    },
  }),
];

async function apiChecks(context: HostContext, stored: StoredTask): Promise<ApiChecks> {
  const { required, checks } = await mergeRules(context, stored.task.project);
  const file = readChecks(stored.paths);
  return {
    configured: checks.run.map(({ name, run }) => ({ name, run })),
    suggested: checks.run.length > 0 ? [] : await suggestionsFor(context, stored),
    required,
    last:
      file === null
        ? null
        : {
            state: file.state,
            reason: file.reason,
            tree: file.tree,
            branch: file.ref.replace('refs/heads/', ''),
            from: file.from,
            files: file.files,
            setup: file.setup,
            denied: [...file.denied],
            startedAtMs: file.startedAtMs,
            endedAtMs: file.endedAtMs,
            checks: file.checks.map(({ tail: _tail, ...check }, n) => {
              const { text, cut } = readBoundedLog(checkLogPath(stored.paths, n), OUTPUT_BYTES);
              return { ...check, output: text, cut };
            }),
          },
  };
}
