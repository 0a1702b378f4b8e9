// protocol/agent-event.ts: what an agent does, in one vocabulary for all of them. An adapter turns each line of its agent's
// output into these; the event log, the terminal and the page know nothing else.
// Invariant: all text in here is the agent's own and hostile. It is shown through lib/sanitize.ts and nowhere else.

/** What a tool is about to do, as far as it can be told from its input. */
export type Action =
  | { readonly kind: 'command'; readonly command: string }
  | {
      readonly kind: 'write';
      /** As the agent named it: absolute, or relative to the project. */
      readonly path: string;
      readonly change: 'write' | 'edit' | 'delete';
      /** What would be written: the whole file, the new part, or a patch. */
      readonly content?: string;
    }
  | { readonly kind: 'read'; readonly path: string }
  | { readonly kind: 'search'; readonly what: string }
  | { readonly kind: 'fetch'; readonly url: string }
  /** A tool that is not known: its input as JSON. */
  | { readonly kind: 'other'; readonly input: string };

export type AgentEvent =
  /** It is up. The session can be resumed by its id. */
  | { readonly type: 'agent.started'; readonly session: string | null; readonly model?: string }
  | { readonly type: 'agent.said'; readonly text: string }
  | { readonly type: 'agent.thought'; readonly text: string }
  | { readonly type: 'tool.started'; readonly id: string; readonly tool: string; readonly action: Action }
  | {
      readonly type: 'tool.finished';
      readonly id: string;
      /** refused: by a hook, or by a rule of the agent's own. */
      readonly outcome: 'done' | 'failed' | 'refused';
      readonly exitCode?: number;
      readonly output?: string;
      /** By the agent's own clock; without it, the time between the two events. */
      readonly durationMs?: number;
    }
  /** Since the start of this turn. Money in millionths of a dollar, where the agent knows it. */
  | {
      readonly type: 'agent.used';
      readonly inputTokens: number;
      readonly outputTokens: number;
      readonly costMicros?: number;
    }
  /** It waits for its model: a retry, a rate limit. */
  | { readonly type: 'agent.waited'; readonly why: string }
  /** It wants an answer from a person. */
  | { readonly type: 'agent.asked'; readonly question: string; readonly choices?: readonly string[] }
  /** The turn is over, by the agent's own account. `text` is its last word. */
  | {
      readonly type: 'agent.finished';
      readonly ok: boolean;
      readonly text?: string;
      /** Why not, if it is not ok: "the API key is wrong". `sign-in`: a person has to sign in again. */
      readonly reason?: string;
      readonly cause?: 'sign-in' | 'rate-limit' | 'budget' | 'turns' | 'api' | 'interrupted';
    }
  /** Output that the adapter does not know: kept and shown as it is. */
  | { readonly type: 'agent.printed'; readonly stream: 'stdout' | 'stderr'; readonly text: string };
