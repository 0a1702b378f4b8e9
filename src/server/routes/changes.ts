// server/routes/changes.ts: the changes of a task: show, merge, apply, undo.
import { applyChosen } from '../../merge/apply.ts';
import { checksFor, mergeRules, needsChecks, requirePassed } from '../../merge/checks.ts';
import { ResolveTask, Started } from '../../protocol/api/api.ts';
import {
  ApiChanges,
  ApiConflict,
  ApiFileText,
  Applied,
  ApplyTask,
  Merged,
  MergeTask,
  Undone,
  type ApiFile,
} from '../../protocol/api/review.ts';
import type { Change } from '../../protocol/changes.ts';
import { AgsError } from '../../protocol/errors.ts';
import type { StoredTask } from '../../store/tasks.ts';
import { openMerge } from '../../merge/merge.ts';
import {
  countShown,
  mergeOutlook,
  readFileText,
  requireShown,
  showChanges,
  sinceViewed,
  type ShownChanges,
  type ShownFile,
} from '../../results/change-set.ts';
import { resolveTask, bothSides } from '../../merge/resolve.ts';
import { undoMerge } from '../../merge/undo.ts';
import type { HostContext } from '../../run/host-context.ts';
import { foldedBecause } from '../../review/lane-rules.ts';
import { inTurns, treeRequest } from './chosen.ts';
import { route, type Api, type Route } from './route.ts';
import { Refusal } from './refusal.ts';

/** Files up to this size are sent whole, so that syntax highlighting is right; of larger files only the changed parts. */
const WHOLE_BYTES = 2 * 2 ** 20;

export const CHANGE_ROUTES: readonly Route[] = [
  route({
    method: 'GET',
    path: '/api/tasks/{task}/changes',
    summary: 'The changes of the task, file by file; files that can run code come first',
    answer: ApiChanges,
    run: (api, { ids }) =>
      api.inTurn(ids['task'] ?? '', async () => {
        const stored = await api.task(ids['task'] ?? '', { work: true });
        const shown = await showChanges(api.context, stored);
        api.changes.keep(stored.task.id, shown);
        return apiChanges(api.context, stored, shown);
      }),
  }),
  route({
    method: 'GET',
    path: '/api/tasks/{task}/changes/{changes}/files/{file}',
    summary: 'One changed file: both texts, the diff and its hunks',
    query: {
      space: '"hide": leave out changes of white space alone. Hunks of this view cannot be selected.',
      since:
        'The ID of the content that was viewed before: show what has changed since. Hunks of this view cannot be selected.',
    },
    answer: ApiFileText,
    async run(api, { ids, query }) {
      const stored = await api.task(ids['task'] ?? '');
      const shown = await shownBefore(api, stored, ids['changes'] ?? '');
      const file = fileOf(shown, ids['file'] ?? '');
      const since = query.get('since');
      const compared = since === null ? file : await sinceViewed(stored, file, since);
      if (compared === null)
        throw new Refusal(404, 'path.not-found', 'The content that you viewed before is no longer stored.');
      const hideSpace = query.get('space') === 'hide';
      const text = await readFileText(stored, compared, WHOLE_BYTES, { hideSpace });
      const isText = text.why === null || text.diff.length > 0;
      return {
        n: file.n,
        before: text.before?.toString('utf8') ?? null,
        after: text.after?.toString('utf8') ?? null,
        patch: isText ? patchText(file.change, text.diff.toString('utf8')) : '',
        hunks: text.hunks.map(({ n, header }) => ({ n, header: Buffer.from(header, 'latin1').toString('utf8') })),
        why: text.why,
      };
    },
  }),
  route({
    method: 'GET',
    path: '/api/tasks/{task}/changes/{changes}/files/{file}/conflict',
    summary: 'Both versions of one file: the branch and the task, with their common base',
    query: { into: 'A branch; by default the one that the task was started from.' },
    answer: ApiConflict,
    async run(api, { ids, query }) {
      const stored = await api.task(ids['task'] ?? '');
      const shown = await shownBefore(api, stored, ids['changes'] ?? '');
      const file = fileOf(shown, ids['file'] ?? '');
      return bothSides(api.context, stored, file, query.get('into') ?? undefined, WHOLE_BYTES);
    },
  }),
  route({
    method: 'POST',
    path: '/api/tasks/{task}/resolve',
    summary: 'Start a task in which an agent resolves the conflicts between this task and the branch',
    body: ResolveTask,
    answer: Started,
    run: (api, { ids, body }) =>
      api.inTurn(ids['task'] ?? '', async () => {
        const stored = await api.task(ids['task'] ?? '', { work: true });
        const made = await resolveTask(api.context, stored, { into: body.into ?? undefined, agent: body.agent });
        await api.taskIndex.touch(made.task.task.id);
        return { tasks: [made.task.task.id] };
      }),
  }),
  route({
    method: 'POST',
    path: '/api/tasks/{task}/merge',
    summary: 'Merge selected files and hunks into a branch, as one commit; or report what would happen (dryRun)',
    body: MergeTask,
    answer: Merged,
    run: (api, { ids, body }) =>
      inTurns(api, ids['task'] ?? '', body, async () => {
        const stored = await api.task(ids['task'] ?? '', { work: true });
        const done = await merge(api, stored, body);
        await api.taskIndex.touch(stored.task.id);
        return done;
      }),
  }),
  route({
    method: 'POST',
    path: '/api/tasks/{task}/apply',
    summary: 'Apply selected files and hunks to the working tree, uncommitted',
    body: ApplyTask,
    answer: Applied,
    run: (api, { ids, body }) =>
      api.inTurn(ids['task'] ?? '', async () => {
        const stored = await api.task(ids['task'] ?? '', { work: true });
        const { files, left } = await applyChosen(api.context, stored, body, { dryRun: body.dryRun });
        await api.taskIndex.look('all');
        return { files: [...files], left: [...left] };
      }),
  }),
  route({
    method: 'POST',
    path: '/api/tasks/{task}/undo',
    summary: 'Undo the last merge of the task',
    answer: Undone,
    run: (api, { ids }) =>
      api.inTurn(ids['task'] ?? '', async () => {
        const { task } = await api.task(ids['task'] ?? '');
        const { ref, from, to, reverted } = await undoMerge(api.context, task.project, task.id);
        await api.taskIndex.touch(task.id);
        const branch = ref.replace('refs/heads/', '');
        if (from === to) return { text: `Nothing of ${task.name} is on ${branch} any more.` };
        const how = reverted ? 'a new commit reverts it' : 'the branch is where it was before';
        return { text: `The merge of ${task.name} into ${branch} was undone: ${how}.` };
      }),
  }),
];

async function shownBefore(api: Api, stored: StoredTask, id: string): Promise<ShownChanges> {
  const kept = api.changes.find(stored.task.id, id);
  if (kept !== undefined) return kept;
  // Another server, or this one before a restart, showed this set: compute it again; if the ID differs, it is too old.
  return api.inTurn(stored.task.id, async () => {
    const shown = await showChanges(api.context, stored);
    requireShown(shown, id, stored);
    api.changes.keep(stored.task.id, shown);
    return shown;
  });
}

function fileOf({ files }: ShownChanges, n: string): ShownFile {
  const file = /^\d{1,6}$/.test(n) ? files[Number(n)] : undefined;
  if (file === undefined) throw new Refusal(404, 'path.not-found', 'There is no file with this number.');
  return file;
}

async function apiChanges(context: HostContext, stored: StoredTask, shown: ShownChanges): Promise<ApiChanges> {
  const counts = await countShown(stored, shown);
  const { branch, commit, conflicts, isMerged } = await mergeOutlook(context, stored, shown);
  const files = shown.files.map(({ n, change }): ApiFile => {
    const count = counts[n] ?? null;
    const lines = { added: count?.added ?? null, removed: count?.removed ?? null };
    return {
      n,
      path: change.path,
      from: change.from ?? null,
      kind: change.kind,
      lane: change.lane,
      reasons: [...change.reasons],
      mode: { before: change.before?.mode ?? null, after: change.after?.mode ?? null },
      oid: { before: change.before?.oid ?? null, after: change.after?.oid ?? null },
      bytes: change.after?.bytes ?? change.before?.bytes ?? 0,
      ...lines,
      conflict: change.conflict === 'conflicts' || conflicts.has(change.path),
      merged: [change.path, change.from ?? change.path].every(isMerged),
      folded: foldedBecause({ path: change.path, kind: change.kind, ...lines }),
    };
  });
  const sum = (side: 'added' | 'removed'): number => files.reduce((total, file) => total + (file[side] ?? 0), 0);
  return {
    id: shown.id,
    commit: shown.agent?.commit ?? null,
    base: shown.agent?.base ?? stored.run.base,
    into: { branch, commit },
    files,
    refused: shown.compared.changeSet.refused.map(({ path, reason }) => ({ path, reason })),
    added: sum('added'),
    removed: sum('removed'),
  };
}

async function merge(api: Api, stored: StoredTask, body: (typeof MergeTask)['_output']): Promise<Merged> {
  const branch = body.into ?? stored.task.goal?.baseRef?.replace('refs/heads/', '') ?? '';
  try {
    using merge = await openMerge(api.context, stored, {
      ...(await treeRequest(api, stored, body)),
      keepCommits: body.keepCommits,
      message: body.message ?? undefined,
    });
    const { plan } = merge;
    const rules = await mergeRules(api.context, stored.task.project);
    if (!body.dryRun && plan.to !== null) requirePassed(stored, plan.tree, rules);
    if (!body.dryRun) await merge.carryOut();
    return {
      branch: plan.ref.replace('refs/heads/', ''),
      from: plan.from,
      to: plan.to,
      files: plan.take.length,
      left: plan.left.map(({ path }) => path),
      tree: plan.tree,
      checked: checksFor(stored, plan.tree)?.state ?? null,
      needsChecks: plan.to !== null && needsChecks(stored, plan.tree, rules),
      conflicts: [],
      problem: null,
    };
  } catch (error) {
    // With dryRun the refusal is the answer.
    if (!body.dryRun || !(error instanceof AgsError) || error.details['changes'] !== undefined) throw error;
    const files = error.details['files'];
    return {
      branch,
      from: '',
      to: null,
      files: 0,
      left: [],
      tree: null,
      checked: null,
      needsChecks: false,
      conflicts: Array.isArray(files) ? files.map(String) : [],
      problem: error.hint === undefined ? error.message : `${error.message}\n${error.hint}`,
    };
  }
}

function patchText(change: Change, hunks: string): string {
  const { path, from = path, before, after } = change;
  const lines = [`diff --git ${name(`a/${from}`)} ${name(`b/${path}`)}`];
  if (before === null) lines.push(`new file mode ${after?.mode ?? '100644'}`);
  else if (after === null) lines.push(`deleted file mode ${before.mode}`);
  else if (before.mode !== after.mode) lines.push(`old mode ${before.mode}`, `new mode ${after.mode}`);
  if (change.from !== undefined) lines.push(`rename from ${name(from)}`, `rename to ${name(path)}`);
  if (hunks !== '')
    lines.push(
      `index ${before?.oid ?? ZERO}..${after?.oid ?? ZERO}`,
      `--- ${before === null ? '/dev/null' : name(`a/${from}`)}`,
      `+++ ${after === null ? '/dev/null' : name(`b/${path}`)}`,
    );
  return `${lines.join('\n')}\n${hunks}`;
}

const ZERO = '0'.repeat(40);

/** Quotes a name as git does: control characters, quotes and backslashes become escapes. */
function name(path: string): string {
  if (!/[\0-\x1f"\\\x7f]/.test(path)) return path;
  return `"${path.replaceAll(/[\0-\x1f"\\\x7f]/g, (char) =>
    char === '"' || char === '\\' ? `\\${char}` : `\\${char.charCodeAt(0).toString(8).padStart(3, '0')}`,
  )}"`;
}
