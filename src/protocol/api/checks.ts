// protocol/api/checks.ts: the server's answers about checks of a task's work and about attacks on its sandbox.
import { z } from 'zod';

/** Milliseconds since 1970. */
const Time = z.number();

const CHECKS_STATES = ['running', 'passed', 'failed', 'ended'] as const;

/** Summary of the last checks of a task. */
const ChecksRow = z.object({
  state: z.enum(CHECKS_STATES).meta({ description: 'ended: stopped, or the process that ran them is gone.' }),
  passed: z.number(),
  of: z.number(),
  name: z.string().nullable().meta({ description: 'The running check, or the first that failed.' }),
  line: z.string().nullable().meta({ description: 'For a failed check: the line with the reason. Hostile text.' }),
  startedAtMs: Time,
  endedAtMs: Time.nullable(),
  tree: z.string().meta({ description: 'The tree that the result holds for.' }),
});

/** Result of `ags doctor --attack` for a sandbox like the task's. */
const AttackedRow = z
  .object({ held: z.number(), of: z.number(), atMs: Time })
  .meta({ description: 'Attempts that a sandbox like its own stopped or limited; null: not attacked yet.' });

/** Evidence for a task, in its row. */
export const PROOFS = {
  checks: ChecksRow.nullable().meta({ description: 'null: not run since its last change.' }),
  attacked: AttackedRow.nullable(),
};

export const ApiCheck = z.object({
  name: z.string(),
  run: z.string(),
  state: z.enum(['waiting', 'running', 'passed', 'failed', 'ended']),
  exitCode: z.number().nullable(),
  startedAtMs: Time.nullable(),
  endedAtMs: Time.nullable(),
  why: z.string().nullable().meta({ description: 'Why it was stopped or did not run.' }),
  line: z.string().nullable(),
  output: z.string().meta({ description: 'The end of its output. Hostile text.' }),
  cut: z.boolean().meta({ description: 'The output was longer.' }),
});
export type ApiCheck = z.infer<typeof ApiCheck>;

export const ApiChecks = z.object({
  configured: z.array(z.object({ name: z.string(), run: z.string() })),
  suggested: z.array(z.string()).meta({ description: "If none are configured: suggestions from the project's files." }),
  required: z.boolean().meta({ description: 'Merges are refused until they pass (merge.check).' }),
  last: z
    .object({
      state: z.enum(CHECKS_STATES),
      reason: z.string().nullable(),
      tree: z.string(),
      branch: z.string(),
      from: z.string(),
      files: z.number(),
      setup: z.enum(['none', 'shared', 'private']).nullable(),
      denied: z.array(z.string()),
      startedAtMs: Time,
      endedAtMs: Time.nullable(),
      checks: z.array(ApiCheck),
    })
    .nullable(),
});
export type ApiChecks = z.infer<typeof ApiChecks>;
export const ChecksStopped = z.object({ stopped: z.boolean().meta({ description: 'false: none were running.' }) });
export type ChecksStopped = z.infer<typeof ChecksStopped>;
