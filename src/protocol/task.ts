// protocol/task.ts: the two files that say what is. `task.json` holds the goal, `run.json` one execution of it.
import { z } from 'zod';
import { RUN_STATES } from './run-state.ts';

/** What an agent was asked to do. */
export const Goal = z.object({
  text: z.string(),
  agent: z.string().meta({ description: 'Its name, or "command".' }),
  command: z
    .array(z.string())
    .optional()
    .meta({ description: 'For any other program: it gets the goal on its standard input.' }),
  model: z.string().optional(),
  interactive: z.boolean(),
  base: z.string().meta({ description: 'The commit it starts from.' }),
  origin: z.string().optional().meta({
    description:
      'Of a task that began with what another one did: the commit that one started from. All of it is compared with this.',
  }),
  baseRef: z.string().nullable().meta({ description: 'The branch that commit was taken from, in full.' }),
  maxSeconds: z.number().nullable(),
  maxCostMicros: z.number().nullable(),
  maxTurns: z.number().nullable(),
  parallel: z.number().default(4).meta({ description: 'How many agents may run at once.' }),
  flags: z.record(z.string(), z.unknown()).meta({ description: 'What the command line asked for, as ConfigFlags.' }),
});
export type Goal = z.infer<typeof Goal>;

export const TaskFile = z.object({
  version: z.literal(1),
  id: z.string().regex(/^[a-z0-9][a-z0-9-]{0,62}$/),
  name: z.string(),
  kind: z.enum(['exec', 'shell', 'agent']),
  goal: Goal.optional().meta({ description: 'Of kind agent alone.' }),
  project: z.string().meta({ description: 'Absolute path of the project.' }),
  git: z.boolean(),
  command: z.array(z.string()),
  attemptOf: z.string().optional().meta({ description: 'The first of several tasks that do one goal side by side.' }),
  createdAt: z.iso.datetime(),
  imported: z
    .object({
      at: z.iso.datetime(),
      file: z.string().meta({ description: 'The name of the file, without its directory.' }),
      format: z.number(),
      name: z.string().meta({ description: 'What the task was called there.' }),
      exportedAt: z.iso.datetime(),
      merges: z
        .array(z.object({ kind: z.enum(['merge', 'undo']), branch: z.string(), commit: z.string(), at: z.string() }))
        .meta({ description: 'Merges that were made there, oldest first.' }),
    })
    .optional()
    .meta({ description: 'Of a task that `ags import` has made.' }),
});
export type TaskFile = z.infer<typeof TaskFile>;

export const NEEDS = ['answer', 'host', 'look'] as const;

export const RunFile = z.object({
  version: z.literal(1),
  state: z.enum(RUN_STATES),
  reason: z.string().optional(),
  needs: z
    .enum(NEEDS)
    .optional()
    .meta({ description: 'Of one that needs somebody: an answer, a host to be allowed, or a look.' }),
  startedAtMs: z.number(),
  endedAtMs: z.number().optional(),
  exitCode: z.number().nullable(),
  label: z.string().meta({ description: 'What isolation was in force, in words.' }),
  sandboxKey: z.string().optional().meta({
    description: 'Names what decided its sandbox; `ags doctor --attack` keeps what it saw under such a name.',
  }),
  workspace: z.enum(['overlay', 'copy']),
  backend: z
    .enum(['native', 'docker', 'podman'])
    .optional()
    .meta({ description: 'What built its sandboxes; native if absent.' }),
  far: z.string().optional().meta({
    description: 'The address of the engine, if that was on another machine: what is looked at afterwards is here.',
  }),
  image: z
    .object({ reference: z.string(), id: z.string() })
    .optional()
    .meta({ description: 'The image that it stood on; the programs of the machine if absent.' }),
  hidden: z.array(z.string()),
  revealed: z.array(z.string()),
  base: z.string().nullable().meta({ description: 'The commit HEAD pointed at when the run started.' }),
  objectFormat: z.enum(['sha1', 'sha256']),
  runner: z.object({ pid: z.number(), startTicks: z.string() }),
  user: z.object({ uid: z.number(), gid: z.number() }),
  /** Paths of the change set already taken or thrown away in an earlier review. */
  settled: z.array(z.string()),
  ignoredDiscarded: z.boolean(),
  /** Of agents alone: */
  number: z.number().optional().meta({ description: 'Which run of the task this is, from 1.' }),
  layers: z.array(z.string()).optional().meta({
    description: 'Read-only directories that the workspace stands on, topmost first, in place of the project itself.',
  }),
  begins: z.string().optional().meta({
    description:
      'Of an imported task: the commit that its workspace is made from when it goes on, in place of the base of its goal.',
  }),
  session: z.string().nullable().optional().meta({ description: "The agent's own name for the conversation." }),
  turns: z
    .number()
    .optional()
    .meta({ description: 'How often the agent was started: once, and once for each message.' }),
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
        .meta({ description: 'Of the files, how many can run code; null: not looked at.' }),
    })
    .nullable()
    .optional()
    .meta({ description: 'What is on the branch of the task; null: it changed nothing.' }),
  fetched: z.boolean().optional().meta({
    description: 'False from the start of a turn until what it did has been brought out; it may have ended without.',
  }),
  used: z.object({ inputTokens: z.number(), outputTokens: z.number(), costMicros: z.number().nullable() }).optional(),
});
export type RunFile = z.infer<typeof RunFile>;
