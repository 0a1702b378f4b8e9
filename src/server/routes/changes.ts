// server/routes/changes.ts: what a task changed, and taking it.
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
import { AgsError } from '../../protocol/errors.ts';
import type { StoredTask } from '../../store/tasks.ts';
import { applyChosen } from '../../merge/apply-chosen.ts';
import { openMerge } from '../../merge/merge.ts';
import { checksFor, mergeRules, needsChecks, requirePassed } from '../../merge/merge-checks.ts';
import {
  countShown,
  foldedBecause,
  mergeOutlook,
  readFileText,
  requireShown,
  showChanges,
  sinceViewed,
  type ShownChanges,
  type ShownFile,
} from '../../results/change-set.ts';
import { resolveTask } from '../../merge/resolve.ts';
import { bothSides } from '../../merge/both-sides.ts';
import { undoMerge } from '../../merge/undo.ts';
import type { World } from '../../run/host-context.ts';
import { patchText } from '../patch-text.ts';
import { Refusal } from './refusal.ts';
import { route, type Desk, type Route } from './route.ts';
import { inTurns, treeRequest } from './chosen.ts';

/** Files up to this size are sent whole, so that colours are right; of larger ones what changed. */
const WHOLE_BYTES = 2 * 2 ** 20;

export const CHANGE_ROUTES: readonly Route[] = [
  route({
    method: 'GET',
    path: '/api/tasks/{task}/changes',
    summary: 'What it changed, file by file; those that can run code first',
    answer: ApiChanges,
    run: (desk, { ids }) =>
      desk.inTurn(ids['task'] ?? '', async () => {
        const stored = await desk.task(ids['task'] ?? '', { work: true });
        const shown = await showChanges(desk.world, stored);
        desk.changes.keep(stored.task.id, shown);
        return apiChanges(desk.world, stored, shown);
      }),
  }),
  route({
    method: 'GET',
    path: '/api/tasks/{task}/changes/{changes}/files/{file}',
    summary: 'One file of it: both texts, the difference and its hunks',
    query: {
      space: '"hide": without what changed in white space alone. Its hunks are to be looked at, not to be chosen from.',
      since:
        'The id of the content that was looked at before: what has changed since. Its hunks cannot be chosen from.',
    },
    answer: ApiFileText,
    async run(desk, { ids, query }) {
      const stored = await desk.task(ids['task'] ?? '');
      const shown = await shownBefore(desk, stored, ids['changes'] ?? '');
      const file = fileOf(shown, ids['file'] ?? '');
      const since = query.get('since');
      const compared = since === null ? file : await sinceViewed(stored, file, since);
      if (compared === null)
        throw new Refusal(404, 'path.not-found', 'What was looked at before is not kept any more.');
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
    summary: 'What the branch and the task did to one file since the task began',
    query: { into: 'A branch; otherwise the one that the task was started from.' },
    answer: ApiConflict,
    async run(desk, { ids, query }) {
      const stored = await desk.task(ids['task'] ?? '');
      const shown = await shownBefore(desk, stored, ids['changes'] ?? '');
      const file = fileOf(shown, ids['file'] ?? '');
      return bothSides(desk.world, stored, file, query.get('into') ?? undefined, WHOLE_BYTES);
    },
  }),
  route({
    method: 'POST',
    path: '/api/tasks/{task}/resolve',
    summary: 'Another task, which puts what this one and the branch have changed into one',
    body: ResolveTask,
    answer: Started,
    run: (desk, { ids, body }) =>
      desk.inTurn(ids['task'] ?? '', async () => {
        const stored = await desk.task(ids['task'] ?? '', { work: true });
        const made = await resolveTask(desk.world, stored, { into: body.into ?? undefined, agent: body.agent });
        await desk.board.touch(made.task.task.id);
        return { tasks: [made.task.task.id] };
      }),
  }),
  route({
    method: 'POST',
    path: '/api/tasks/{task}/merge',
    summary: 'Put chosen files and hunks onto a branch, as one commit; or say what would happen (dryRun)',
    body: MergeTask,
    answer: Merged,
    run: (desk, { ids, body }) =>
      inTurns(desk, ids['task'] ?? '', body, async () => {
        const stored = await desk.task(ids['task'] ?? '', { work: true });
        const done = await merge(desk, stored, body);
        await desk.board.touch(stored.task.id);
        return done;
      }),
  }),
  route({
    method: 'POST',
    path: '/api/tasks/{task}/apply',
    summary: 'Put chosen files and hunks into the working tree, uncommitted',
    body: ApplyTask,
    answer: Applied,
    run: (desk, { ids, body }) =>
      desk.inTurn(ids['task'] ?? '', async () => {
        const stored = await desk.task(ids['task'] ?? '', { work: true });
        const { files, left } = await applyChosen(desk.world, stored, body, { dryRun: body.dryRun });
        await desk.board.look('all');
        return { files: [...files], left: [...left] };
      }),
  }),
  route({
    method: 'POST',
    path: '/api/tasks/{task}/undo',
    summary: 'Take the last merge of it back',
    answer: Undone,
    run: (desk, { ids }) =>
      desk.inTurn(ids['task'] ?? '', async () => {
        const { task } = await desk.task(ids['task'] ?? '');
        const { ref, from, to, reverted } = await undoMerge(desk.world, task.project, task.id);
        await desk.board.touch(task.id);
        const branch = ref.replace('refs/heads/', '');
        if (from === to) return { text: `Nothing of ${task.name} is on ${branch} any more.` };
        const how = reverted ? 'a new commit takes it back' : 'it is where it was before';
        return { text: `The merge of ${task.name} into ${branch} is undone: ${how}.` };
      }),
  }),
];

async function shownBefore(desk: Desk, stored: StoredTask, id: string): Promise<ShownChanges> {
  const kept = desk.changes.find(stored.task.id, id);
  if (kept !== undefined) return kept;
  // Another server, or this one before it was started anew, has shown it: then it is the same again, or too old.
  return desk.inTurn(stored.task.id, async () => {
    const shown = await showChanges(desk.world, stored);
    requireShown(shown, id, stored);
    desk.changes.keep(stored.task.id, shown);
    return shown;
  });
}

function fileOf({ files }: ShownChanges, n: string): ShownFile {
  const file = /^\d{1,6}$/.test(n) ? files[Number(n)] : undefined;
  if (file === undefined) throw new Refusal(404, 'path.not-found', 'There is no file of this number.');
  return file;
}

async function apiChanges(world: World, stored: StoredTask, shown: ShownChanges): Promise<ApiChanges> {
  const counts = await countShown(stored, shown);
  const { branch, commit, conflicts } = await mergeOutlook(world, stored, shown);
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

async function merge(desk: Desk, stored: StoredTask, body: (typeof MergeTask)['_output']): Promise<Merged> {
  const branch = body.into ?? stored.task.goal?.baseRef?.replace('refs/heads/', '') ?? '';
  try {
    using merge = await openMerge(desk.world, stored, {
      ...(await treeRequest(desk, stored, body)),
      keepCommits: body.keepCommits,
      message: body.message ?? undefined,
    });
    const { plan } = merge;
    const rules = await mergeRules(desk.world, stored.task.project);
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
    // To try it is to find out: what would be refused is the answer.
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
