// protocol/api/review.ts: what a review and a merge say: files, their texts, what of them is taken, and what came of it. See api.ts.
import { z } from 'zod';
import { Id } from './id.ts';

export const ApiFile = z.object({
  n: z.number().meta({ description: 'Its number in this change set: what it is called in addresses.' }),
  path: z.string(),
  from: z.string().nullable(),
  kind: z.enum(['new', 'modified', 'deleted', 'renamed', 'mode', 'symlink', 'type']),
  lane: z.enum(['inert', 'ci', 'host']),
  reasons: z.array(z.string()),
  mode: z.object({ before: z.string().nullable(), after: z.string().nullable() }),
  oid: z.object({ before: z.string().nullable(), after: z.string().nullable() }),
  bytes: z.number(),
  added: z.number().nullable().meta({ description: 'null: not text.' }),
  removed: z.number().nullable(),
  conflict: z.boolean().meta({ description: 'It also changed on the branch that it would be merged into.' }),
  folded: z.string().nullable().meta({ description: 'Why it is shown folded: lock file, generated, large.' }),
});
export type ApiFile = z.infer<typeof ApiFile>;

export const ApiChanges = z.object({
  id: z
    .string()
    .meta({ description: 'Of exactly this content. A merge carries it, and is refused if there is newer.' }),
  commit: z.string().nullable(),
  base: z.string().nullable(),
  into: z.object({ branch: z.string().nullable(), commit: z.string().nullable() }),
  files: z.array(ApiFile),
  refused: z.array(z.object({ path: z.string(), reason: z.string() })),
  added: z.number(),
  removed: z.number(),
});
export type ApiChanges = z.infer<typeof ApiChanges>;

export const ApiHunk = z.object({ n: z.number(), header: z.string() });
/** One file, whole. Texts are null where the file is not there, not text, or above the limit (then `why` says so). */
export const ApiFileText = z.object({
  n: z.number(),
  before: z.string().nullable(),
  after: z.string().nullable(),
  patch: z.string().meta({ description: 'A unified diff with its "diff --git" header; empty if it is not text.' }),
  hunks: z.array(ApiHunk),
  why: z.string().nullable(),
});
export type ApiFileText = z.infer<typeof ApiFileText>;

/** Of a file that both sides changed: what each did to what both began with. */
export const ApiConflict = z.object({
  branch: z.string(),
  yours: z.string().meta({ description: 'The change on the branch, as a unified diff; empty: it is not text.' }),
  theirs: z.string().meta({ description: 'The change of the task.' }),
});
export type ApiConflict = z.infer<typeof ApiConflict>;

export const Selection = z.object({
  changes: z.string().meta({ description: 'The id of the change set that was shown.' }),
  files: z
    .array(z.object({ n: z.number(), hunks: z.array(z.number()).optional().meta({ description: 'None: all.' }) }))
    .min(1),
});
/** What a merge takes, and where to; checks before it take the same. */
const Taking = Selection.extend({
  besides: Selection.extend({ task: Id })
    .nullable()
    .default(null)
    .meta({ description: 'Whole files of another task of the project, into the same commit.' }),
  into: z.string().nullable().default(null).meta({ description: 'null: the branch that the task was started from.' }),
  create: z.boolean().default(false).meta({ description: 'Make the branch of `into` if it is not there.' }),
});
export const MergeTask = Taking.extend({
  keepCommits: z.boolean().default(false),
  message: z.string().nullable().default(null),
  dryRun: z.boolean().default(false),
});
export type MergeTask = z.input<typeof MergeTask>;

export const Merged = z.object({
  branch: z.string(),
  from: z.string(),
  to: z.string().nullable().meta({ description: 'null: everything was there already.' }),
  files: z.number(),
  left: z.array(z.string()),
  tree: z.string().nullable().meta({ description: 'What the branch has then; null: it cannot be merged.' }),
  checked: z
    .enum(['passed', 'failed'])
    .nullable()
    .meta({ description: 'What the last checks said, if they ran on exactly this tree.' }),
  needsChecks: z
    .boolean()
    .meta({ description: 'Refused until the checks have passed on exactly this tree (merge.check).' }),
  conflicts: z.array(z.string()).meta({ description: 'Of a dry run: why it would be refused.' }),
  problem: z.string().nullable(),
});
export type Merged = z.infer<typeof Merged>;

export const StartChecks = Taking.extend({
  commands: z
    .array(z.string().min(1).max(4096))
    .max(50)
    .default([])
    .meta({ description: 'In place of those that are configured.' }),
});
export type StartChecks = z.input<typeof StartChecks>;

export const ApplyTask = Selection.extend({ dryRun: z.boolean().default(false) });
export type ApplyTask = z.input<typeof ApplyTask>;
export const Applied = z.object({ files: z.array(z.string()), left: z.array(z.string()) });
export type Applied = z.infer<typeof Applied>;
export const Undone = z.object({ text: z.string() });
export type Undone = z.infer<typeof Undone>;
