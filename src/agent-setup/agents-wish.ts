// agent-setup/agents-wish.ts: which agents a command is about. Apart from agents-inside.ts, because most commands are about none and
// must not load the agents.
import { existsSync } from 'node:fs';
import { basename } from 'node:path';
import { PROGRAM_NAMES } from '../agents/names.ts';
import type { HostContext } from '../run/host-context.ts';
import { agentsDir } from './installed-agents.ts';

export interface AgentsWish {
  readonly kind: 'exec' | 'shell';
  readonly command: readonly string[];
  /** Agents that the user named; `none`: sign in none. */
  readonly named: readonly string[];
}

/** Whether there is any agent to show or to sign in. */
export function concernsAgents(context: HostContext, wish: AgentsWish): boolean {
  return wish.named.length > 0 || isAgent(wish) || isPlainShell(wish) || existsSync(agentsDir(context));
}

export function isAgent({ command: [first = ''] }: AgentsWish): boolean {
  return PROGRAM_NAMES.includes(first);
}

/** A shell in which the user may type anything. */
export function isPlainShell({ kind, command: [first] }: AgentsWish): boolean {
  return kind === 'shell' && (first === undefined || SHELLS.includes(basename(first)));
}

const SHELLS = ['ash', 'bash', 'dash', 'fish', 'ksh', 'sh', 'zsh'];
