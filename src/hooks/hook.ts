// hooks/hook.ts: one hook, whatever it is made of: a program of this machine, one inside the sandbox, or code of ours.
import type { HookInput, HookPoint } from '../protocol/hook.ts';

export interface Hook {
  /** Its file, its command or its name. */
  readonly name: string;
  readonly point: HookPoint;
  readonly timeoutMs: number;
  /** Whatever it throws is a refusal. `signal`: the time is over, or the run is. */
  ask(input: HookInput, signal: AbortSignal): Promise<Answer>;
}

/** `reason` is plain text; it goes to the agent and to the user. */
export type Answer =
  | { readonly verdict: 'allowed' }
  | { readonly verdict: 'refused' | 'failed'; readonly reason: string };

export const ALLOWED: Answer = { verdict: 'allowed' };
