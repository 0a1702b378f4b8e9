// tasks/run-hooks.ts: the hooks of one run: found, approved, copied out of reach, and asked whenever its agent does something.
import type { Server } from 'node:net';
import type { Agent, HookDoor } from '../agents/agent.ts';
import type { EffectiveConfig } from '../config/effective.ts';
import type { AgentEvent } from '../protocol/agent-event.ts';
import type { GateRequest, GateVerdict, HookDecided } from '../protocol/hook.ts';
import type { Door } from '../protocol/spec.ts';
import type { World } from './world.ts';

export interface RunHooks {
  /** For the adapter's plan; null: no hook is configured. */
  readonly door: HookDoor | null;
  /** To be added to the sandbox: doors of its network, read-only files. */
  readonly doors: readonly Door[];
  readonly files: readonly { readonly to: string; readonly content: string }[];
  onDoor(name: string, handle: Server): void;
  /** Never rejects. */
  gate(request: GateRequest): Promise<GateVerdict>;
  /** For agents that cannot be stopped: what they did, as they say it. */
  observe(event: AgentEvent): void;
  close(): Promise<void>;
}

export interface RunHooksInput {
  readonly world: World;
  /** The user's own checkout. */
  readonly project: string;
  readonly config: Pick<EffectiveConfig, never>;
  readonly task: string;
  readonly run: number;
  readonly agent: Agent;
  readonly goal: string;
  emit(event: HookDecided): void;
  /** Runs a program in the running sandbox, in the project, with `input` on its stdin. */
  runInside(
    argv: readonly string[],
    input: string,
    signal: AbortSignal,
  ): Promise<{ readonly exitCode: number; readonly stderr: string }>;
}

/** @public Called by the runner. */
export async function openRunHooks(_input: RunHooksInput): Promise<RunHooks> {
  return {
    door: null,
    doors: [],
    files: [],
    onDoor: () => undefined,
    gate: () => Promise.resolve({ allow: true }),
    observe: () => undefined,
    close: () => Promise.resolve(),
  };
}
