// protocol/task.ts: the two state files of a task. `task.json` holds the goal, `run.json` one execution of it.
import { z } from 'zod';
import { RUN_STATES } from './run-state.ts';

/** The work that an agent was given. */
export const Goal = z.object({
  text: z.string(),
  agent: z.string().meta({ description: 'Its name, or "command".' }),
  command: z
    .array(z.string())
    .optional()
    .meta({ description: 'A program that is not a known agent; it reads the goal from standard input.' }),
  model: z.string().optional(),
  interactive: z.boolean(),
  base: z.string().meta({ description: 'The commit it starts from.' }),
  origin: z.string().optional().meta({
    description:
      'For a task that started from the result of another: the commit that the other one started from. Changes are compared with it.',
  }),
  baseRef: z.string().nullable().meta({ description: 'Full name of the branch of that commit.' }),
  maxSeconds: z.number().nullable(),
  maxCostMicros: z.number().nullable(),
  maxTurns: z.number().nullable(),
  maxTokens: z.number().nullable().default(null),
  parallel: z.number().default(4).meta({ description: 'How many agents may run at once.' }),
  flags: z.record(z.string(), z.unknown()).meta({ description: 'Flags of the command line, as ConfigFlags.' }),
});
export type Goal = z.infer<typeof Goal>;

export const TaskFile = z.object({
  version: z.literal(1),
  id: z.string().regex(/^[a-z0-9][a-z0-9-]{0,62}$/),
  name: z.string(),
  kind: z.enum(['exec', 'shell', 'agent']),
  goal: Goal.optional().meta({ description: 'Only for kind agent.' }),
  project: z.string().meta({ description: 'Absolute path of the project.' }),
  git: z.boolean(),
  command: z.array(z.string()),
  attemptOf: z.string().optional().meta({ description: 'The first of several parallel attempts at one goal.' }),
  createdAt: z.iso.datetime(),
  imported: z
    .object({
      at: z.iso.datetime(),
      file: z.string().meta({ description: 'The name of the file, without its directory.' }),
      format: z.number(),
      name: z.string().meta({ description: 'Name of the task on the machine that exported it.' }),
      exportedAt: z.iso.datetime(),
      merges: z
        .array(z.object({ kind: z.enum(['merge', 'undo']), branch: z.string(), commit: z.string(), at: z.string() }))
        .meta({ description: 'Merges made on that machine, oldest first.' }),
    })
    .optional()
    .meta({ description: 'Only for a task that `ags import` created.' }),
});
export type TaskFile = z.infer<typeof TaskFile>;

/** The first that is open is shown. */
export const NEEDS = ['answer', 'host', 'model', 'prompt', 'look'] as const;

export const RunFile = z.object({
  version: z.literal(1),
  state: z.enum(RUN_STATES),
  reason: z.string().optional(),
  needs: z.enum(NEEDS).optional().meta({
    description:
      'What the task needs from the user: an answer, a host to be allowed, a model that answers again, input at the prompt of its terminal, or a review.',
  }),
  startedAtMs: z.number(),
  endedAtMs: z.number().optional(),
  exitCode: z.number().nullable(),
  label: z.string().meta({ description: 'The isolation in force, in words.' }),
  sandboxKey: z.string().optional().meta({
    description: 'Identifies the configuration of its sandbox; `ags doctor --attack` stores results under it.',
  }),
  workspace: z.enum(['overlay', 'copy']),
  backend: z
    .enum(['native', 'docker', 'podman'])
    .optional()
    .meta({ description: 'The backend of its sandboxes; native if absent.' }),
  far: z.string().optional().meta({
    description: 'The address of a remote engine. Inspections afterwards run on this machine.',
  }),
  image: z
    .object({ reference: z.string(), id: z.string() })
    .optional()
    .meta({ description: 'The image that provided its programs; if absent, the host did.' }),
  home: z.string().optional().meta({ description: 'The directory of the kept home that it uses; if absent, its own.' }),
  hidden: z.array(z.string()),
  revealed: z.array(z.string()),
  base: z.string().nullable().meta({ description: 'The commit HEAD pointed at when the run started.' }),
  objectFormat: z.enum(['sha1', 'sha256']),
  runner: z.object({ pid: z.number(), startTicks: z.string() }),
  user: z.object({ uid: z.number(), gid: z.number() }),
  /** Paths of the change set that an earlier review accepted or discarded. */
  settled: z.array(z.string()),
  ignoredDiscarded: z.boolean(),
  /** Only for agents: */
  number: z.number().optional().meta({ description: 'Which run of the task this is, from 1.' }),
  layers: z.array(z.string()).optional().meta({
    description: 'Read-only layers of the workspace, topmost first, in place of the project itself.',
  }),
  begins: z.string().optional().meta({
    description:
      'For an imported task that continues: the commit its workspace is made from, in place of the base of its goal.',
  }),
  after: z.string().optional().meta({
    description:
      'The task that has to end well before this run begins, from its result. Absent once that has happened.',
  }),
  session: z.string().nullable().optional().meta({ description: "The agent's own ID of the conversation." }),
  turns: z
    .number()
    .optional()
    .meta({ description: 'Number of starts of the agent: one for the goal and one for each message.' }),
  result: z
    .object({
      commit: z.string(),
      files: z.number(),
      added: z.number(),
      removed: z.number(),
      risky: z
        .number()
        .nullable()
        .optional()
        .meta({ description: 'Number of files that can run code; null: not determined.' }),
    })
    .nullable()
    .optional()
    .meta({ description: 'The commit on the branch of the task; null: the agent changed nothing.' }),
  fetched: z.boolean().optional().meta({
    description:
      'False from the start of a turn until its work has been brought out. An interrupted turn leaves it false.',
  }),
  interrupted: z.boolean().optional().meta({
    description:
      'Its runner was killed, and its work has been brought out since. `ags continue --all` goes on with it.',
  }),
  time: z.object({ workMs: z.number(), queueMs: z.number(), userMs: z.number(), sinceMs: z.number() }).optional().meta({
    description:
      'Milliseconds that its agent worked, that it was queued, and that it waited for the user, up to `sinceMs`. Absent until its first change of state.',
  }),
  waitsUntilMs: z.number().optional().meta({
    description: 'Its model refuses for now; it goes on by itself at this time.',
  }),
  used: z
    .object({
      inputTokens: z.number(),
      outputTokens: z.number(),
      costMicros: z.number().nullable(),
      by: z.enum(['gateway', 'agent']).optional().meta({
        description: "Who counted: the gateway, from the model's answers, or the agent itself.",
      }),
    })
    .optional(),
});
export type RunFile = z.infer<typeof RunFile>;
