// test/model/scenario.ts: what a scripted model says, whatever the API. One program serves all shapes (server.ts); each shape is
// one file that turns a turn into the events of its API.
import type { ServerResponse } from 'node:http';

/** One answer of the model: some text, a call of one of the agent's own tools, or both. Without a call the turn ends. */
export interface Turn {
  readonly say?: string;
  readonly call?: { readonly tool: string; readonly input: Readonly<Record<string, unknown>> };
  /** In place of an answer. */
  readonly fail?: { readonly status: number; readonly message: string };
}

/** The n-th request of a conversation is answered with the n-th turn; a message of the user's later goes on where it was. */
export type Scenario = readonly Turn[];

export interface ApiShape {
  readonly name: string;
  /** Of the path of a request. */
  matches(method: string, path: string): boolean;
  /** How many answers of the model the conversation holds already; null: a request beside it (a title, a suggestion). */
  answered(body: unknown): number | null;
  /** Streams, or not, as the request wants it. */
  answer(response: ServerResponse, turn: Turn, body: unknown, path: string): void;
}
