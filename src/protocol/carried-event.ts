// protocol/carried-event.ts: the events that a task takes along when it moves to another machine.
// Invariant: an event that is read back has the fields that its readers expect, of the types that they expect, and no others: whoever
// shows events trusts ags to have written them, and a file from elsewhere was written by anybody.
import { z } from 'zod';
import type { EventType, TaskEvent } from './event.ts';

const text = z.string().max(200_000);
const number = z.number();
const oid = z.string().max(64);
const action = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('command'), command: text }),
  z.object({
    kind: z.literal('write'),
    path: text,
    change: z.enum(['write', 'edit', 'delete']),
    content: text.optional(),
  }),
  z.object({ kind: z.literal('read'), path: text }),
  z.object({ kind: z.literal('search'), what: text }),
  z.object({ kind: z.literal('fetch'), url: text }),
  z.object({ kind: z.literal('other'), input: text }),
]);
const result = z
  .object({
    commit: oid,
    files: number,
    added: number,
    removed: number,
    risky: number.nullable().optional(),
  })
  .nullable();
const optional = text.optional();

const FIELDS = {
  'run.queued': { goal: optional, agent: optional, run: number.optional() },
  'run.waiting': { why: text },
  'run.moved': { state: text },
  'run.prepared': { step: text, text },
  'run.printed': { text },
  'run.noticed': { text },
  'run.started': {
    turn: number,
    agent: text,
    title: text,
    version: text.nullable(),
    prompt: text,
    sandbox: text,
  },
  'run.ended': {
    state: text,
    reason: optional,
    limit: z.boolean().optional(),
    exitCode: number.nullable(),
    result: result.optional(),
  },
  'run.imported': { from: text, file: text, exportedAt: text, dropped: number },
  'turn.ended': { turn: number, exitCode: number.nullable(), state: text },
  'message.sent': { text },
  'agent.started': { session: text.nullable(), model: optional },
  'agent.said': { text },
  'agent.thought': { text },
  'model.answered': {
    model: text,
    inputTokens: number,
    outputTokens: number,
    costMicros: number.nullable(),
    estimated: z.boolean().optional(),
  },
  'model.failed': { status: number.nullable(), why: text },
  'agent.used': { inputTokens: number, outputTokens: number, costMicros: number.optional() },
  'agent.waited': { why: text },
  'agent.asked': { question: text, choices: z.array(text).max(100).optional() },
  'agent.finished': {
    ok: z.boolean(),
    text: optional,
    reason: optional,
    cause: z.enum(['sign-in', 'rate-limit', 'budget', 'turns', 'api', 'interrupted']).optional(),
  },
  'agent.printed': { stream: z.enum(['stdout', 'stderr']), text },
  'tool.started': { id: text, tool: text, action },
  'tool.finished': {
    id: text,
    outcome: z.enum(['done', 'failed', 'refused']),
    exitCode: number.optional(),
    output: optional,
    durationMs: number.optional(),
  },
  'hook.decided': {
    point: text,
    hook: text,
    tool: text,
    verdict: z.enum(['allowed', 'refused', 'failed']),
    reason: text.nullable(),
    ms: number,
    mode: z.enum(['enforced', 'observed']),
  },
  'network.denied': { host: text, port: number, reason: text, program: optional },
  'network.asked': { host: text, port: number, program: optional },
  'network.limit-reached': { limit: text, reason: text },
  'changes.captured': {
    branch: text,
    commit: oid,
    files: number,
    added: number,
    removed: number,
    risky: number.nullable().optional(),
  },
  'merge.done': { ref: text, commit: oid, files: number.optional(), of: number.optional() },
  'merge.undone': { ref: text, commit: oid },
  'events.lost': { count: number },
} as const satisfies { readonly [T in Exclude<EventType, Left>]: Fields<T> };

/** Events about this machine alone stay here. */
type Left = 'service.seeding' | 'service.healthy' | 'service.failed' | 'review.taken' | 'review.dropped';

/** A schema for each field, so that a new one is not left behind. */
type Fields<T extends EventType> = {
  readonly [K in Exclude<keyof Extract<TaskEvent, { readonly type: T }>, 'type'>]-?: z.ZodType;
};

const SCHEMAS = new Map<string, z.ZodType>(
  Object.entries(FIELDS).map(([type, fields]) => [
    type,
    z.object({ type: z.literal(type), at: z.iso.datetime(), ...fields }),
  ]),
);

export type CarriedEvent = TaskEvent & { readonly at: string };

/** null: it is none that ags writes. */
export function readCarriedEvent(value: unknown): CarriedEvent | null {
  const type = typeof value === 'object' && value !== null ? (value as { type?: unknown }).type : undefined;
  const parsed = typeof type === 'string' ? SCHEMAS.get(type)?.safeParse(value) : undefined;
  return parsed?.success === true ? (parsed.data as CarriedEvent) : null;
}
