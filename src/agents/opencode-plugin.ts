// agents/opencode-plugin.ts: the plugin that lets opencode ask our hooks. It runs in opencode's own process, inside.
// Invariant: a call goes on only if the answer was {"allow":true}; whatever else comes, or does not come, refuses it.
import { REFUSED } from './hook-command.ts';

/** `home`: what commands get back of the environment that opencode alone should have. */
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

export const gatePlugin = async () => ({
  'tool.execute.before': async (input, output) => gate('before', { tool: input.tool, args: output.args }),
  'tool.execute.after': async (input) => gate('after', { tool: input.tool, args: input.args }),
  'shell.env': async (input, output) => {
    output.env.XDG_CONFIG_HOME = ${JSON.stringify(`${home}/.config`)};
  },
});
`;
}
