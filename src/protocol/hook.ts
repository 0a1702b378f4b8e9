// protocol/hook.ts: what a hook is asked, and what it may answer. One contract for all agents.
import type { Action } from './agent-event.ts';

/**
 * pre-any: before whatever the agent does. pre-bash: before a command. pre-writes and post-writes: before and after a file is
 * written. post-stop: when the agent says that it is done.
 */
export const HOOK_POINTS = ['pre-any', 'pre-bash', 'pre-writes', 'post-writes', 'post-stop'] as const;
export type HookPoint = (typeof HOOK_POINTS)[number];

/** What an agent is about to do, or has done: comes from the agent's own hook, by whatever road. Hostile. */
export interface GateRequest {
  readonly when: 'before' | 'after' | 'stop';
  /** The agent's name for it: Bash, apply_patch, write_file. Empty for stop. */
  readonly tool: string;
  /** Several, if one call writes several files. */
  readonly actions: readonly Action[];
  /** The tool's input as the agent gave it. */
  readonly input: unknown;
}

/** `reason` is shown to the agent. */
export type GateVerdict = { readonly allow: true } | { readonly allow: false; readonly reason: string };

/** JSON on a hook's standard input. */
export interface HookInput {
  readonly version: 1;
  readonly hook: HookPoint;
  readonly task: string;
  readonly run: number;
  readonly agent: string;
  readonly goal: string;
  /** Where the project is, inside and outside alike. */
  readonly project: string;
  readonly tool: string;
  readonly actions: readonly Action[];
  readonly input: unknown;
}
