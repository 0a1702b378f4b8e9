// server/routes/checks.ts: the checks of a project on what was chosen of a task.
import { StartChecks } from '../../protocol/api/review.ts';
import { ApiChecks, ChecksStopped } from '../../protocol/api/checks.ts';
import { readBoundedLog } from '../../store/bounded-log.ts';
import { checkLogPath, readChecks } from '../../store/checks.ts';
import type { StoredTask } from '../../store/tasks.ts';
import { suggestionsFor } from '../../merge/check-suggestions.ts';
import { mergeRules } from '../../merge/merge-checks.ts';
import { stopChecks } from '../../agent-run/stop-checks.ts';
import type { World } from '../../run/host-context.ts';
import { route, type Route } from './route.ts';
import { inTurns, treeRequest } from './chosen.ts';

/** Of what each printed, this much of its end is sent. */
const OUTPUT_BYTES = 64 * 1024;

export const CHECK_ROUTES: readonly Route[] = [
  route({
    method: 'GET',
    path: '/api/tasks/{task}/checks',
    summary: 'Which checks there are, and what the last ones said, with the end of what each printed',
    answer: ApiChecks,
    run: async (desk, { ids }) => apiChecks(desk.world, await desk.task(ids['task'] ?? '')),
  }),
  route({
    method: 'POST',
    path: '/api/tasks/{task}/checks',
    summary: 'Run them on chosen files and hunks, in clean sandboxes over what the branch would be',
    body: StartChecks,
    answer: ApiChecks,
    run: (desk, { ids, body }) =>
      inTurns(desk, ids['task'] ?? '', body, async () => {
        const stored = await desk.task(ids['task'] ?? '', { work: true });
        await desk.checks.start(stored, { ...(await treeRequest(desk, stored, body)), commands: body.commands });
        await desk.board.touch(stored.task.id);
        return apiChecks(desk.world, stored);
      }),
  }),
  route({
    method: 'POST',
    path: '/api/tasks/{task}/checks/stop',
    summary: 'End those that run, whoever started them',
    answer: ChecksStopped,
    async run(desk, { ids }) {
      const { task, paths } = await desk.task(ids['task'] ?? '');
      const stopped = await stopChecks(paths);
      await desk.board.touch(task.id);
      return { stopped };
    },
  }),
];

async function apiChecks(world: World, stored: StoredTask): Promise<ApiChecks> {
  const { required, checks } = await mergeRules(world, stored.task.project);
  const file = readChecks(stored.paths);
  return {
    configured: checks.run.map(({ name, run }) => ({ name, run })),
    suggested: checks.run.length > 0 ? [] : await suggestionsFor(world, stored),
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
