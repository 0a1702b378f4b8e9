// agent-setup/agent-program.ts: the types of an agent's program, on the host and as a sandbox sees it.
import { type ProgramMount } from '../run/one-off-sandbox.ts';

export interface AgentProgram {
  /** The command inside, with an interpreter in front if it needs one. */
  readonly argv: readonly string[];
  readonly mounts: readonly ProgramMount[];
  /** null: unknown. */
  readonly version: string | null;
  readonly source: 'host' | 'installed' | 'built-in' | 'image';
  /** Its path on the host, if the source is `host`. */
  readonly path?: string;
}

export interface HostProgram {
  readonly argv: readonly string[];
  readonly mounts: readonly ProgramMount[];
  /** The path as found on PATH, and the file that its links lead to. */
  readonly path: string;
  readonly real: string;
}
