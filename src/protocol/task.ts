// protocol/task.ts: the two files that say what is. `task.json` holds the goal, `run.json` one execution of it.
import { z } from 'zod';
import { RUN_STATES } from './run-state.ts';

export const TaskFile = z.object({
  version: z.literal(1),
  id: z.string().regex(/^[a-z0-9][a-z0-9-]{0,62}$/),
  name: z.string(),
  kind: z.enum(['exec', 'shell']),
  project: z.string().meta({ description: 'Absolute path of the project.' }),
  git: z.boolean(),
  command: z.array(z.string()),
  createdAt: z.iso.datetime(),
});
export type TaskFile = z.infer<typeof TaskFile>;

export const RunFile = z.object({
  version: z.literal(1),
  state: z.enum(RUN_STATES),
  reason: z.string().optional(),
  startedAtMs: z.number(),
  endedAtMs: z.number().optional(),
  exitCode: z.number().nullable(),
  label: z.string().meta({ description: 'What isolation was in force, in words.' }),
  workspace: z.enum(['overlay', 'copy']),
  hidden: z.array(z.string()),
  revealed: z.array(z.string()),
  base: z.string().nullable().meta({ description: 'The commit HEAD pointed at when the run started.' }),
  objectFormat: z.enum(['sha1', 'sha256']),
  runner: z.object({ pid: z.number(), startTicks: z.string() }),
  user: z.object({ uid: z.number(), gid: z.number() }),
  /** Paths of the change set already taken or thrown away in an earlier review. */
  settled: z.array(z.string()),
  ignoredDiscarded: z.boolean(),
});
export type RunFile = z.infer<typeof RunFile>;
