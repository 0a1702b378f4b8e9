// agents/hook-command.ts: the hook of an agent whose hooks are shell commands, made so that it fails closed.
// These agents go on with a call if its hook fails in any way but exit code 2, or runs into the agent's own time limit; some also
// if a hook that refuses prints nothing, or prints JSON that says yes. So the limit here is the shorter one, every failure
// becomes a 2, and a plain sentence is always the last line.
import { HOOK_ANSWER_SECONDS } from '../protocol/hook.ts';
import type { HookDoor } from './agent.ts';

/** The program itself gives up sooner. */
const HOOK_SECONDS = HOOK_ANSWER_SECONDS + 600;
/** For the agent's own limit. */
export const AGENT_HOOK_SECONDS = HOOK_SECONDS + 60;

/** The last line of what an agent is told of a refusal. */
export const REFUSED = 'Refused by a hook.';

/**
 * Some agents put variables into their settings, so there is no `$NAME` in it. When an agent stops, only a plain no sends it back to
 * work: one that cannot be asked would never let it end.
 */
export function hookCommand(door: HookDoor, event: string): string {
  const command = ['timeout', '-k', '1', String(HOOK_SECONDS), ...door.command, event].map(quote).join(' ');
  if (STOPPING.has(event)) return `${command} >&2 || { [ $? -ne 2 ] || exit 2; }`;
  return `${command} >&2 || { echo '${REFUSED}' >&2; exit 2; }`;
}

const STOPPING = new Set(['Stop', 'AfterAgent']);

function quote(word: string): string {
  return /^[\w./:=@%+,-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}
