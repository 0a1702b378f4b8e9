// protocol/api/api.ts: requests and answers of the server as schemas; the OpenAPI document and the typed client come from them.
// Invariant: URLs hold only IDs (projects, tasks, change sets, file numbers); paths and texts are only in bodies.
import { z } from 'zod';
import { PROOFS } from './checks.ts';
import { Id } from './id.ts';
import { SHOWN_STATES } from '../run-state.ts';
import { RUN_PHASES } from '../run-time.ts';
import { NETWORK_MODES } from '../network.ts';
import { NEEDS } from '../task.ts';
import type { SeenEvent } from '../event.ts';

/** Milliseconds since 1970. */
const Time = z.number();

export const ApiError = z.object({
  error: z.object({
    code: z.string(),
    message: z.string(),
    hint: z.string().optional(),
    details: z.unknown().optional(),
  }),
});
export type ApiError = z.infer<typeof ApiError>;

// Projects

export const ApiProject = z.object({
  id: Id.meta({ description: 'Derived from its path; the same on every start.' }),
  name: z.string(),
  path: z.string(),
  url: z.string().nullable().meta({ description: 'Where the server cloned it from, if it did.' }),
  branch: z.string().nullable().meta({ description: 'The checked-out branch.' }),
  state: z.enum(['ready', 'cloning', 'failed', 'missing']),
  progress: z.string().nullable().meta({ description: 'For a clone: the last line that git printed.' }),
  tasks: z.number().meta({ description: 'Number of tasks; `needYou` counts those that need the user.' }),
  needYou: z.number(),
});
export type ApiProject = z.infer<typeof ApiProject>;

export const ApiProjects = z.object({
  projects: z.array(ApiProject),
  seq: z.number().meta({ description: 'Number in the topic `projects`: subscribe after it to miss nothing.' }),
});
export type ApiProjects = z.infer<typeof ApiProjects>;

export const AddProject = z.union([z.object({ path: z.string() }), z.object({ url: z.string() })]);
export type AddProject = z.infer<typeof AddProject>;

export const ApiBranches = z.object({
  current: z.string().nullable(),
  branches: z.array(z.string()).meta({ description: 'Short names, without the branches of tasks.' }),
});
export type ApiBranches = z.infer<typeof ApiBranches>;

// Agents

export const ApiAgent = z.object({
  name: z.string(),
  title: z.string(),
  installed: z.boolean(),
  version: z.string().nullable(),
  from: z.string().nullable().meta({ description: 'Where its program was found.' }),
  signedIn: z.enum(['yes', 'no', 'not-needed', 'expired']),
  signIn: z.string().nullable().meta({ description: 'How it is signed in, or how to sign in, in words.' }),
});
export type ApiAgent = z.infer<typeof ApiAgent>;

// Tasks

/** A row of the list, without the whole goal. */
export const ApiTask = z.object({
  id: Id,
  name: z.string(),
  project: Id,
  kind: z.enum(['exec', 'shell', 'agent']),
  state: z.enum(SHOWN_STATES),
  reason: z.string().nullable(),
  needs: z.enum(NEEDS).nullable().meta({
    description:
      'What the task needs from you: an answer, a host to be allowed, a model that answers again, input at the prompt of its terminal, or a review.',
  }),
  live: z.boolean(),
  group: z.enum(['needs-you', 'look', 'running', 'queued', 'rest']).meta({
    description:
      'What it waits for: an answer now (needs-you), a review (look: failed or ready), its agent (running), a slot (queued), nothing (rest).',
  }),
  title: z.string().meta({ description: 'The first line of the goal, or the command, at most 200 characters.' }),
  agent: z.string().nullable(),
  agentTitle: z.string().nullable(),
  attemptOf: z
    .string()
    .nullable()
    .meta({ description: 'Tasks with the same value are parallel attempts at one goal.' }),
  doing: z.string().nullable().meta({ description: 'Its last action, in words.' }),
  time: z
    .object({
      workMs: z.number(),
      queueMs: z.number(),
      userMs: z.number(),
      phase: z.enum(RUN_PHASES).nullable(),
      sinceMs: Time,
    })
    .meta({
      description:
        'Milliseconds that its agent worked, that it was queued, and that it waited for the user; `phase` goes on since `sinceMs`, which the sums do not include.',
    }),
  startedAtMs: Time,
  endedAtMs: Time.nullable(),
  costMicros: z.number().nullable(),
  tokens: z.number().nullable(),
  files: z.number().nullable(),
  added: z.number().nullable(),
  removed: z.number().nullable(),
  risky: z.number().nullable().meta({ description: 'Number of files that can run code; null: not determined.' }),
  blockedHosts: z.array(z.string()),
  ...PROOFS,
  merged: z
    .object({ branch: z.string(), commit: z.string(), files: z.number().nullable(), of: z.number().nullable() })
    .nullable()
    .meta({
      description: 'Its last merge that was not undone, which `POST .../undo` takes back: how many files, of how many.',
    }),
  seq: z.number().meta({ description: 'Number of the last event that this row includes.' }),
});
export type ApiTask = z.infer<typeof ApiTask>;

export const ApiTasks = z.object({
  tasks: z.array(ApiTask).meta({ description: 'Tasks that need the user come first.' }),
  parallel: z.number().meta({ description: 'How many agents may run at once.' }),
  seq: z.number().meta({ description: 'Number in the topic `tasks`: subscribe after it to miss nothing.' }),
});
export type ApiTasks = z.infer<typeof ApiTasks>;

export const ApiBudget = z.object({
  costMicros: z.number(),
  spentMicros: z.number(),
  per: z.enum(['day', 'month']),
  of: z.enum(['user', 'project']).meta({ description: 'Whose tasks count: all, or those of the project.' }),
  origin: z.string(),
});
export type ApiBudget = z.infer<typeof ApiBudget>;

export const ApiTaskDetail = ApiTask.extend({
  goal: z.string().nullable(),
  command: z.array(z.string()),
  base: z.string().nullable().meta({ description: 'The commit it started from.' }),
  baseRef: z.string().nullable().meta({ description: 'Short name of the branch of that commit.' }),
  branch: z.string().nullable().meta({ description: 'The branch with its result.' }),
  commit: z.string().nullable(),
  model: z.string().nullable(),
  interactive: z.boolean(),
  run: z.number(),
  turns: z.number(),
  sandbox: z.string().meta({ description: 'The isolation in force, in words.' }),
  backend: z.enum(['native', 'docker', 'podman']).meta({ description: 'The backend of its sandboxes.' }),
  image: z.string().nullable().meta({ description: 'The image that provides its programs; null: this machine.' }),
  hidden: z.array(z.string()).meta({ description: 'Files of the project that it cannot see.' }),
  limits: z.object({
    maxSeconds: z.number().nullable(),
    maxCostMicros: z.number().nullable(),
    maxTurns: z.number().nullable(),
    maxTokens: z.number().nullable(),
  }),
  budgets: z.array(ApiBudget).meta({ description: 'Over all tasks, as they are now.' }),
  inputTokens: z.number().nullable(),
  outputTokens: z.number().nullable(),
  touched: z
    .array(z.object({ path: z.string(), change: z.string() }))
    .meta({ description: 'While it runs: files that the agent reported as written, latest last.' }),
  waiting: z
    .array(z.object({ id: Id, text: z.string(), atMs: Time }))
    .meta({ description: 'Messages that the agent has not received yet, oldest first.' }),
  asks: z.array(
    z.object({ host: z.string(), port: z.number(), untilMs: Time.nullable(), program: z.string().nullable() }),
  ),
  can: z.array(
    z.enum(['send', 'stop', 'continue', 'restart', 'fork', 'review', 'merge', 'terminal', 'attach', 'remove', 'undo']),
  ),
});
export type ApiTaskDetail = z.infer<typeof ApiTaskDetail>;

export const StartTasks = z.object({
  project: Id,
  goals: z
    .array(z.object({ text: z.string().min(1), name: z.string().nullable().optional(), agent: z.string().optional() }))
    .min(1)
    .max(100),
  agents: z.array(z.string()).max(8).default([]),
  attempts: z.number().int().min(1).max(8).default(1),
  base: z.string().nullable().default(null),
  model: z.string().nullable().default(null),
  maxSeconds: z.number().nullable().default(null),
  maxCostMicros: z.number().nullable().default(null),
  maxTurns: z.number().nullable().default(null),
  maxTokens: z.number().nullable().default(null),
  network: z.enum(NETWORK_MODES).optional(),
  services: z.array(z.string()).max(16).optional().meta({
    description: 'Only these of the configured services; an empty list: none.',
  }),
  from: Id.optional().meta({ description: 'The task whose result it starts from (fork).' }),
});
export type StartTasks = z.input<typeof StartTasks>;

export const Started = z.object({ tasks: z.array(Id) });
export type Started = z.infer<typeof Started>;

/** A new task that starts from the result of this one. Missing fields keep their value of this one. */
export const ForkTask = z.object({
  text: z.string().min(1).meta({ description: 'The new goal.' }),
  name: z.string().nullable().default(null),
  agent: z.string().optional(),
  model: z.string().nullable().default(null),
});
export type ForkTask = z.input<typeof ForkTask>;

/** A new task that resolves the conflict between this task and a branch. */
export const ResolveTask = z.object({
  into: z.string().nullable().default(null).meta({ description: 'null: the branch that the task was started from.' }),
  agent: z.string().optional(),
});
export type ResolveTask = z.input<typeof ResolveTask>;

export const SendMessage = z.object({ text: z.string().min(1) });
export type SendMessage = z.infer<typeof SendMessage>;
export const Withdrawn = z.object({
  text: z
    .string()
    .nullable()
    .meta({ description: 'The text of the message; null: the agent has already received it.' }),
});
export type Withdrawn = z.infer<typeof Withdrawn>;
export const Sent = z.object({
  when: z.enum(['now', 'later', 'begun']).meta({
    description:
      'now: the agent has received it; later: it gets it after its turn; begun: it had ended and continues with this message.',
  }),
});
export type Sent = z.infer<typeof Sent>;
export const StopTask = z.object({ force: z.boolean().default(false) });
export const Stopped = z.object({ stopping: z.boolean().meta({ description: 'false: it was not running.' }) });
export type Stopped = z.infer<typeof Stopped>;
export const RemoveTask = z.object({ force: z.boolean().default(false) });
export const Removed = z.object({ freedBytes: z.number(), branches: z.array(z.string()) });
export type Removed = z.infer<typeof Removed>;

/** An event from events.jsonl, without its hash chain. All text in it comes from the agent and is hostile. */
export const ApiEvent = z.looseObject({
  seq: z.number(),
  at: z.string(),
  type: z.string(),
}) as unknown as z.ZodType<SeenEvent>;
export type ApiEvent = SeenEvent;

export const ApiEvents = z.object({
  events: z.array(ApiEvent),
  first: z.number().meta({ description: 'Sequence number of the first event; 0: none.' }),
  last: z.number(),
});
export type ApiEvents = z.infer<typeof ApiEvents>;

// Network

export const ApiAttempt = z.object({
  host: z.string(),
  port: z.number(),
  verdict: z.enum(['allowed', 'denied', 'asked']),
  why: z.string(),
  program: z.string().nullable(),
  task: Id,
  tries: z.number(),
  lastAtMs: Time,
  bytesIn: z.number(),
  bytesOut: z.number(),
});
export type ApiAttempt = z.infer<typeof ApiAttempt>;

export const ApiRule = z.object({
  action: z.enum(['allow', 'deny']),
  text: z.string(),
  origin: z.string(),
});
export type ApiRule = z.infer<typeof ApiRule>;

export const ApiNetwork = z.object({
  attempts: z.array(ApiAttempt),
  rules: z.array(ApiRule),
  presets: z.array(z.object({ name: z.string(), hosts: z.array(z.string()), used: z.boolean() })),
});
export type ApiNetwork = z.infer<typeof ApiNetwork>;

export const ChangeRule = z.object({
  action: z.enum(['allow', 'deny']),
  rule: z.string().meta({ description: 'A host, or a whole rule as in the configuration.' }),
  scope: z.enum(['run', 'project', 'always']),
});
export type ChangeRule = z.infer<typeof ChangeRule>;
export const RuleChanged = z.object({ text: z.string() });
export type RuleChanged = z.infer<typeof RuleChanged>;

// Storage

export const ApiStorage = z.object({
  items: z.array(
    z.object({ what: z.string(), why: z.string(), bytes: z.number(), safe: z.boolean(), kept: z.string().nullable() }),
  ),
  bytes: z.number(),
});
export type ApiStorage = z.infer<typeof ApiStorage>;
export const Cleaned = z.object({ removed: z.number(), bytes: z.number() });
export type Cleaned = z.infer<typeof Cleaned>;

export const ApiAbout = z.object({
  version: z.string(),
  sandbox: z.object({ ok: z.boolean(), text: z.string() }),
  agents: z.array(ApiAgent),
  defaults: z.object({
    agent: z.string().nullable(),
    parallel: z.number(),
    maxSeconds: z.number().nullable(),
    maxCostMicros: z.number().nullable(),
    maxTurns: z.number().nullable(),
  }),
  budgets: z.array(ApiBudget).meta({ description: 'Over all tasks, from your own configuration.' }),
});
export type ApiAbout = z.infer<typeof ApiAbout>;

// Live

/**
 * One WebSocket per tab (/api/live), or server-sent events (/api/events?topics=a,b&after=n).
 * Topics: `tasks` (rows), `projects`, `task:<id>` (its events), `network:<task>` (decisions).
 * The server numbers messages of `tasks`, `projects` and `network`; messages of `task:<id>` have the number of their event.
 */
export const LiveRequest = z.discriminatedUnion('do', [
  z.object({ do: z.literal('subscribe'), topic: z.string(), after: z.number().nullable() }),
  z.object({ do: z.literal('unsubscribe'), topic: z.string() }),
]);
export type LiveRequest = z.infer<typeof LiveRequest>;

export const LiveMessage = z.discriminatedUnion('type', [
  z.object({ topic: z.string(), type: z.literal('event'), seq: z.number(), data: ApiEvent }),
  z.object({ topic: z.string(), type: z.literal('task'), seq: z.number(), data: ApiTask }),
  z.object({ topic: z.string(), type: z.literal('task-gone'), seq: z.number(), data: z.object({ id: Id }) }),
  z.object({ topic: z.string(), type: z.literal('project'), seq: z.number(), data: ApiProject }),
  z.object({ topic: z.string(), type: z.literal('attempt'), seq: z.number(), data: ApiAttempt }),
  /** Missed messages cannot be replayed: read the snapshot again, then continue from `seq`. */
  z.object({ topic: z.string(), type: z.literal('reset'), seq: z.number(), data: z.null() }),
]);
export type LiveMessage = z.infer<typeof LiveMessage>;
