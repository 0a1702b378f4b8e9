// protocol/hook.ts: the input and the answers of a hook. One contract for all agents.
import type { Action } from './agent-event.ts';

/**
 * pre-any: before every action of the agent. pre-bash: before a command. pre-writes and post-writes: before and after a file is
 * written. post-stop: when the agent reports that it is done.
 */
export const HOOK_POINTS = ['pre-any', 'pre-bash', 'pre-writes', 'post-writes', 'post-stop'] as const;
export type HookPoint = (typeof HOOK_POINTS)[number];

/** Hooks that come with ags. */
export const READY_HOOKS = ['log', 'protect-branches', 'no-secrets', 'format'] as const;
export type ReadyHook = (typeof READY_HOOKS)[number];

/** An action that the agent is about to do, or has done, as its own hook reports it. Hostile. */
export interface GateRequest {
  readonly when: 'before' | 'after' | 'stop';
  /** The agent's name for the tool: Bash, apply_patch, write_file. Empty for stop. */
  readonly tool: string;
  /** More than one if a call writes several files. */
  readonly actions: readonly Action[];
  /** The tool's input as the agent gave it. */
  readonly input: unknown;
}

/** The agent sees `reason`. */
export type GateVerdict = { readonly allow: true } | { readonly allow: false; readonly reason: string };

/** All hooks together answer within this time. Agents' own hook timeouts must be longer: most agents continue without an answer. */
export const HOOK_ANSWER_SECONDS = 3000;

/** JSON on a hook's standard input. */
export interface HookInput {
  readonly version: 1;
  readonly hook: HookPoint;
  readonly task: string;
  readonly run: number;
  readonly agent: string;
  readonly goal: string;
  /** The project's path, the same inside and outside. */
  readonly project: string;
  readonly tool: string;
  readonly actions: readonly Action[];
  readonly input: unknown;
}

/** One hook's answer about one action. `failed`: it gave no valid answer, which counts as a refusal. */
export interface HookDecided {
  readonly type: 'hook.decided';
  readonly point: HookPoint;
  /** Its file, its command or its name. */
  readonly hook: string;
  readonly tool: string;
  readonly verdict: 'allowed' | 'refused' | 'failed';
  readonly reason: string | null;
  readonly ms: number;
  /** observed: the agent cannot be stopped; the hook hears of the action afterwards. */
  readonly mode: 'enforced' | 'observed';
}

/** A hook from the configuration. A string runs with `sh -c`. */
export interface HookCommand {
  readonly point: HookPoint;
  readonly run: string | readonly string[];
  readonly timeoutSeconds: number | null;
  /** Runs in the sandbox instead of on this machine. */
  readonly inside: boolean;
  readonly origin: string;
}

export interface HookPolicy {
  readonly use: readonly ReadyHook[];
  readonly commands: readonly HookCommand[];
  /** For hooks without a timeout of their own. */
  readonly timeoutSeconds: number;
}
