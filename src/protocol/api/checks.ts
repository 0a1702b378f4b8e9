// protocol/api/checks.ts: what the server says about checks, of a task's work and of its sandbox.
import { z } from 'zod';

/** Milliseconds since 1970. */
const Time = z.number();

const CHECKS_STATES = ['running', 'passed', 'failed', 'ended'] as const;

/** The last checks of what a task did, shortly. */
const ChecksRow = z.object({
  state: z.enum(CHECKS_STATES).meta({ description: 'ended: stopped, or the process that ran them is gone.' }),
  passed: z.number(),
  of: z.number(),
  name: z.string().nullable().meta({ description: 'The one that runs, or the first that failed.' }),
  line: z.string().nullable().meta({ description: 'Of one that failed: the line that tells why. Hostile text.' }),
  startedAtMs: Time,
  endedAtMs: Time.nullable(),
  tree: z.string().meta({ description: 'They are about this tree, and no other.' }),
});

/** How a sandbox like a task's own fared under `ags doctor --attack`. */
const AttackedRow = z
  .object({ held: z.number(), of: z.number(), atMs: Time })
  .meta({ description: 'Attempts on a sandbox like its own that were stopped or limited; null: none was attacked.' });

/** What speaks for a task, in its row. */
export const PROOFS = {
  checks: ChecksRow.nullable().meta({ description: 'null: not run since it was worked on.' }),
  attacked: AttackedRow.nullable(),
};

export const ApiCheck = z.object({
  name: z.string(),
  run: z.string(),
  state: z.enum(['waiting', 'running', 'passed', 'failed', 'ended']),
  exitCode: z.number().nullable(),
  startedAtMs: Time.nullable(),
  endedAtMs: Time.nullable(),
  why: z.string().nullable().meta({ description: 'Why it was ended, or did not run.' }),
  line: z.string().nullable(),
  output: z.string().meta({ description: 'The end of what it printed. Hostile text.' }),
  cut: z.boolean().meta({ description: 'It printed more.' }),
});
export type ApiCheck = z.infer<typeof ApiCheck>;

export const ApiChecks = z.object({
  configured: z.array(z.object({ name: z.string(), run: z.string() })),
  suggested: z.array(z.string()).meta({ description: "If none are configured: from the project's own files." }),
  required: z.boolean().meta({ description: 'Nothing is merged unless they have passed (merge.check).' }),
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
