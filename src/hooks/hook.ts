// hooks/hook.ts: one hook of any kind: a program of this machine, one inside the sandbox, or code of ags.
import type { HookInput, HookPoint } from '../protocol/hook.ts';

export interface Hook {
  /** Its file, its command or its name. */
  readonly name: string;
  readonly point: HookPoint;
  readonly timeoutMs: number;
  /** An exception is a refusal. `signal`: the time limit is reached, or the run is over. */
  ask(input: HookInput, signal: AbortSignal): Promise<Answer>;
}

/** `reason` is plain text for the agent and the user. */
export type Answer =
  | { readonly verdict: 'allowed' }
  | { readonly verdict: 'refused' | 'failed'; readonly reason: string };

export const ALLOWED: Answer = { verdict: 'allowed' };
