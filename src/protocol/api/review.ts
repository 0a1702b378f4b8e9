// protocol/api/review.ts: requests and answers of reviews and merges: files, their texts, the selection, the result.
import { z } from 'zod';
import { Id } from './id.ts';

export const ApiFile = z.object({
  n: z.number().meta({ description: 'Its number in this change set, used in URLs.' }),
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
  conflict: z.boolean().meta({ description: 'It also changed on the target branch.' }),
  merged: z.boolean().meta({ description: 'The target branch has this change already, from an earlier merge.' }),
  folded: z.string().nullable().meta({ description: 'Why it is shown folded: lock file, generated, large.' }),
});
export type ApiFile = z.infer<typeof ApiFile>;

export const ApiChanges = z.object({
  id: z
    .string()
    .meta({ description: 'ID of exactly this content. A merge names it, and is refused if the content has changed.' }),
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
/** One whole file. Texts are null where the file is missing, not text, or above the limit (`why` has the reason). */
export const ApiFileText = z.object({
  n: z.number(),
  before: z.string().nullable(),
  after: z.string().nullable(),
  patch: z.string().meta({ description: 'A unified diff with its "diff --git" header; empty if it is not text.' }),
  hunks: z.array(ApiHunk),
  why: z.string().nullable(),
});
export type ApiFileText = z.infer<typeof ApiFileText>;

/** A file that both sides changed: each side's change to the common version. */
export const ApiConflict = z.object({
  branch: z.string(),
  yours: z.string().meta({ description: 'The change on the branch, as a unified diff; empty: it is not text.' }),
  theirs: z.string().meta({ description: 'The change of the task.' }),
});
export type ApiConflict = z.infer<typeof ApiConflict>;

export const Selection = z.object({
  changes: z.string().meta({ description: 'The ID of the displayed change set.' }),
  files: z
    .array(z.object({ n: z.number(), hunks: z.array(z.number()).optional().meta({ description: 'Absent: all.' }) }))
    .min(1),
});
/** The selection and target branch of a merge; checks before it use the same. */
const Taking = Selection.extend({
  besides: Selection.extend({ task: Id })
    .nullable()
    .default(null)
    .meta({ description: 'Whole files of another task of the project, for the same commit.' }),
  into: z.string().nullable().default(null).meta({ description: 'null: the branch that the task was started from.' }),
  create: z.boolean().default(false).meta({ description: 'Create the branch `into` if it does not exist.' }),
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
  to: z.string().nullable().meta({ description: 'null: the branch already had everything.' }),
  files: z.number(),
  left: z.array(z.string()),
  tree: z
    .string()
    .nullable()
    .meta({ description: 'The tree of the branch after the merge; null: it cannot be merged.' }),
  checked: z
    .enum(['passed', 'failed'])
    .nullable()
    .meta({ description: 'Result of the last checks, if they ran on exactly this tree.' }),
  needsChecks: z
    .boolean()
    .meta({ description: 'Refused until the checks have passed on exactly this tree (merge.check).' }),
  conflicts: z.array(z.string()).meta({ description: 'In a dry run: why the merge would be refused.' }),
  problem: z.string().nullable(),
});
export type Merged = z.infer<typeof Merged>;

export const StartChecks = Taking.extend({
  commands: z
    .array(z.string().min(1).max(4096))
    .max(50)
    .default([])
    .meta({ description: 'Commands in place of the configured ones.' }),
});
export type StartChecks = z.input<typeof StartChecks>;

export const ApplyTask = Selection.extend({ dryRun: z.boolean().default(false) });
export type ApplyTask = z.input<typeof ApplyTask>;
export const Applied = z.object({ files: z.array(z.string()), left: z.array(z.string()) });
export type Applied = z.infer<typeof Applied>;
export const Undone = z.object({ text: z.string() });
export type Undone = z.infer<typeof Undone>;
