// test/model/scenario.ts: the answers of a scripted model, independent of the API. One server (server.ts) serves all shapes; each shape
// is one file that converts a turn to the events of its API.
import type { ServerResponse } from 'node:http';

/** One answer of the model: text, a call of one of the agent's tools, or both. Without a call the turn ends. */
export interface Turn {
  readonly say?: string;
  readonly call?: { readonly tool: string; readonly input: Readonly<Record<string, unknown>> };
  /** Added to those of the answer. */
  readonly headers?: Readonly<Record<string, string>>;
  /** An error instead of an answer. */
  readonly fail?: { readonly status: number; readonly message: string; readonly retryAfter?: number };
}

/** The n-th request of a conversation is answered with the n-th turn; a later message of the user continues from there. */
export type Scenario = readonly Turn[];

export interface ApiShape {
  readonly name: string;
  matches(method: string, path: string): boolean;
  /** The number of answers in the conversation; null: a request beside it (a title, a suggestion). */
  answered(body: unknown): number | null;
  /** Streams the answer if the request asks for it. */
  answer(response: ServerResponse, turn: Turn, body: unknown, path: string): void;
}
