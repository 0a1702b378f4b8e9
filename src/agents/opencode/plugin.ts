// agents/opencode/plugin.ts: the plugin through which opencode asks the hooks. It runs in opencode's own process, inside.
// Invariant: a call continues only after the answer {"allow":true}; any other answer, or none, refuses it.
import { REFUSED } from '../hook-command.ts';

/** Spelt so that tools do not take this text for a module. Commands get the XDG_CONFIG_HOME of `home` back; ours is for opencode only. */
export function gatePlugin(url: string, home: string): string {
  return `const ask = globalThis.fetch;
const url = ${JSON.stringify(url)};

async function gate(event, body) {
  let reason = 'it gave no answer';
  try {
    const answer = await ask(url + '/' + event, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(3_600_000),
    });
    const verdict = await answer.json();
    if (answer.status === 200 && verdict.allow === true) return;
    if (typeof verdict.reason === 'string') reason = verdict.reason;
  } catch (error) {
    reason = String(error);
  }
  throw new Error(reason + '\\n${REFUSED}');
}

EXPORT const gatePlugin = async () => ({
  'tool.execute.before': async (input, output) => gate('before', { tool: input.tool, args: output.args }),
  'tool.execute.after': async (input) => gate('after', { tool: input.tool, args: input.args }),
  'shell.env': async (input, output) => {
    output.env.XDG_CONFIG_HOME = ${JSON.stringify(`${home}/.config`)};
  },
});
`.replace('EXPORT', 'export');
}

/**
 * Started in place of opencode. opencode also imports plugins that it finds from the project upwards, whatever its options: code
 * in the process that asks the hooks. It looks for them once, at its start, so it is not started if there are any.
 */
export const START = `refuse() {
  echo "opencode would load $1 into its own process, where it could undo the hooks. Remove it, or run without hooks." >&2
  exit 78
}
at=$(pwd -P)
while :; do
  above=\${at%/}
  for folder in plugin plugins; do
    [ ! -e "$above/.opencode/$folder" ] || refuse "$above/.opencode/$folder"
  done
  for file in opencode.json opencode.jsonc .opencode/opencode.json .opencode/opencode.jsonc; do
    [ -e "$above/$file" ] || continue
    grep -qiE 'plugin|\\\\u' "$above/$file"
    [ $? -eq 1 ] || refuse "plugins of $above/$file"
  done
  [ "$at" != / ] || break
  at=$(dirname "$at")
done
exec "$@"
`;
