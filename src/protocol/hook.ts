// protocol/hook.ts: what a hook is asked, and what it may answer. One contract for all agents.
import type { Action } from './agent-event.ts';

/**
 * pre-any: before whatever the agent does. pre-bash: before a command. pre-writes and post-writes: before and after a file is
 * written. post-stop: when the agent says that it is done.
 */
export const HOOK_POINTS = ['pre-any', 'pre-bash', 'pre-writes', 'post-writes', 'post-stop'] as const;
export type HookPoint = (typeof HOOK_POINTS)[number];

/** Those that come with ags. */
export const READY_HOOKS = ['log', 'protect-branches', 'no-secrets', 'format'] as const;
export type ReadyHook = (typeof READY_HOOKS)[number];

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

/**
 * All hooks together answer within this. The agents' own time limits for their hooks must be longer: most of them go on without
 * an answer.
 */
export const HOOK_ANSWER_SECONDS = 3000;

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

/** What one hook said about one action. `failed`: it did not answer as it must, which counts as a no. */
export interface HookDecided {
  readonly type: 'hook.decided';
  readonly point: HookPoint;
  /** Its file, its command or its name. */
  readonly hook: string;
  readonly tool: string;
  readonly verdict: 'allowed' | 'refused' | 'failed';
  readonly reason: string | null;
  readonly ms: number;
  /** observed: the agent could not be stopped, the hook was told afterwards. */
  readonly mode: 'enforced' | 'observed';
}

/** A hook that the configuration names. A text is for `sh -c`. */
export interface HookCommand {
  readonly point: HookPoint;
  readonly run: string | readonly string[];
  readonly timeoutSeconds: number | null;
  /** In the sandbox instead of on this machine. */
  readonly inside: boolean;
  readonly origin: string;
}

export interface HookPolicy {
  readonly use: readonly ReadyHook[];
  readonly commands: readonly HookCommand[];
  /** Of hooks that say nothing else. */
  readonly timeoutSeconds: number;
}
