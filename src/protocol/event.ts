// protocol/event.ts: every event of a task, as one union. The log, the terminal, the page and the export read these and nothing else.
// Invariant: a reader is a switch without default, or a table of EventReaders, so that it does not compile without a new event.
import type { AgentEvent } from './agent-event.ts';
import type { HookDecided } from './hook.ts';
import type { RunState } from './run-state.ts';

export type RunEvent =
  | { readonly type: 'run.queued'; readonly goal?: string; readonly agent?: string; readonly run?: number }
  /** No slot is free. */
  | { readonly type: 'run.waiting'; readonly why: string }
  | { readonly type: 'run.moved'; readonly state: RunState }
  | { readonly type: 'run.prepared'; readonly step: string; readonly text: string }
  /** A line that a setup command printed. */
  | { readonly type: 'run.printed'; readonly text: string }
  | { readonly type: 'run.noticed'; readonly text: string }
  /** A turn began. `prompt` is empty in the first turn, whose prompt is the goal, and where a hook sent the agent back. */
  | {
      readonly type: 'run.started';
      readonly turn: number;
      readonly agent: string;
      readonly title: string;
      readonly version: string | null;
      readonly prompt: string;
      readonly sandbox: string;
    }
  | {
      readonly type: 'run.ended';
      readonly state: RunState;
      readonly reason?: string;
      /** It failed because it reached a limit. */
      readonly limit?: boolean;
      readonly exitCode: number | null;
      readonly result?: Captured | null;
    }
  | {
      readonly type: 'run.imported';
      readonly from: string;
      readonly file: string;
      readonly exportedAt: string;
      readonly dropped: number;
    }
  | { readonly type: 'turn.ended'; readonly turn: number; readonly exitCode: number | null; readonly state: RunState }
  | { readonly type: 'message.sent'; readonly text: string };

/** The work of an agent as a commit. */
export interface Captured {
  readonly commit: string;
  readonly files: number;
  readonly added: number;
  readonly removed: number;
  /** null: not counted. */
  readonly risky?: number | null | undefined;
}

export type NetworkEvent =
  | {
      readonly type: 'network.denied';
      readonly host: string;
      readonly port: number;
      readonly reason: string;
      readonly program?: string;
    }
  /** A connection waits for a person. */
  | { readonly type: 'network.asked'; readonly host: string; readonly port: number; readonly program?: string }
  | { readonly type: 'network.limit-reached'; readonly limit: string; readonly reason: string };

/** What the gateway sees of requests to models. */
export type ModelEvent =
  | {
      readonly type: 'model.answered';
      readonly model: string;
      readonly inputTokens: number;
      readonly outputTokens: number;
      /** null: no price of this model is known. */
      readonly costMicros: number | null;
      /** The answer did not say, so its size decides. */
      readonly estimated?: boolean;
    }
  /** It answered 429 or 5xx, or not at all (null). Repeated failures are told less and less often. */
  | { readonly type: 'model.failed'; readonly status: number | null; readonly why: string };

export type ServiceEvent =
  | { readonly type: 'service.seeding'; readonly service: string; readonly kind: string }
  | { readonly type: 'service.healthy'; readonly service: string; readonly kind: string }
  | {
      readonly type: 'service.failed';
      readonly service: string;
      readonly kind: string;
      readonly why: string;
      /** The last lines of its log. */
      readonly lines: readonly string[];
    };

export type MergeEvent =
  | {
      readonly type: 'merge.done';
      readonly ref: string;
      readonly commit: string;
      /** How many of the task's changed files this merge took, and how many there are. */
      readonly files?: number;
      readonly of?: number;
    }
  | { readonly type: 'merge.undone'; readonly ref: string; readonly commit: string };

/** A person took files into the working tree, or threw them away. */
export type ReviewEvent =
  | { readonly type: 'review.taken'; readonly paths: readonly string[] }
  | { readonly type: 'review.dropped'; readonly paths: readonly string[] };

export type TaskEvent =
  | AgentEvent
  | RunEvent
  | NetworkEvent
  | ModelEvent
  | ServiceEvent
  | HookDecided
  | MergeEvent
  | ReviewEvent
  | ({ readonly type: 'changes.captured'; readonly branch: string } & Captured)
  /** The log was full. */
  | { readonly type: 'events.lost'; readonly count: number };

export type EventType = TaskEvent['type'];

/** An event with its place in the log of its task, as readers outside see it. */
export type SeenEvent = TaskEvent & { readonly seq: number; readonly at: string; readonly task: string };

/** `prev` is the hash of the line before. */
export type EventLine = SeenEvent & { readonly prev: string };

/** One function for each type of event. */
export type EventReaders<Result, Line extends TaskEvent = EventLine, More extends readonly unknown[] = []> = {
  readonly [T in EventType]: (event: Extract<Line, { readonly type: T }>, ...more: More) => Result;
};

/** Undefined for an event that a newer ags wrote. */
export function readEvent<Result, Line extends TaskEvent, More extends readonly unknown[]>(
  readers: EventReaders<Result, Line, More>,
  event: Line,
  ...more: More
): Result | undefined {
  const read = Object.hasOwn(readers, event.type)
    ? (readers[event.type] as (event: Line, ...more: More) => Result)
    : undefined;
  return read?.(event, ...more);
}
