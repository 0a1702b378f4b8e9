// agents/hook-command.ts: the shell command of an agent's hook, made to fail closed.
// These agents continue with a call if its hook fails with any status but 2, or exceeds the agent's own time limit; some also
// if a refusing hook prints nothing, or prints JSON that allows the call. So our time limit is shorter, every failure
// becomes a 2, and the last line is always a plain sentence.
import { HOOK_ANSWER_SECONDS } from '../protocol/hook.ts';
import type { HookListener } from './agent.ts';

/** Longer than the program's own time limit. */
const HOOK_SECONDS = HOOK_ANSWER_SECONDS + 600;
/** The time limit for the agent's settings. */
export const AGENT_HOOK_SECONDS = HOOK_SECONDS + 60;

/** The last line of every refusal that an agent sees. */
export const REFUSED = 'Refused by a hook.';

/**
 * Contains no `$NAME`, because some agents expand variables in their settings. When an agent stops, only an explicit refusal sends
 * it back to work: otherwise unreachable hooks would never let it end.
 */
export function hookCommand(listener: HookListener, event: string): string {
  const command = ['timeout', '-k', '1', String(HOOK_SECONDS), ...listener.command, event].map(quote).join(' ');
  if (STOPPING.has(event)) return `${command} >&2 || { [ $? -ne 2 ] || exit 2; }`;
  return `${command} >&2 || { echo '${REFUSED}' >&2; exit 2; }`;
}

const STOPPING = new Set(['Stop', 'AfterAgent']);

function quote(word: string): string {
  return /^[\w./:=@%+,-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}
