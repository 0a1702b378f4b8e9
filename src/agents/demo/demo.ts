// agents/demo/demo.ts: a scripted agent that needs no key and no account. For newcomers, for the demo, for tests.
import type { GateRequest } from '../../protocol/hook.ts';
import type { Action } from '../../protocol/agent-event.ts';
import { DEMO } from '../demo-script.ts';
import { readEventLines } from '../event-lines.ts';
import type { Agent } from '../agent.ts';

const SCRIPT = '/run/ags/demo-agent';

export const demo: Agent = {
  name: 'demo',
  title: 'Demo agent',
  install: null,
  signIns: [],
  hosts: [],
  scratch: [],
  gate: 'enforced',
  resumes: true,
  readHook,
  plan: (input) => ({
    // In a terminal the goal cannot be on the standard input.
    argv:
      input.mode === 'headless'
        ? ['perl', SCRIPT, input.session ?? input.newSession, shellWords(input.hooks?.command ?? [])]
        : [
            'sh',
            '-c',
            `printf %s "$1" | perl ${SCRIPT} "$2" "$3"; exec "\${SHELL:-/bin/sh}"`,
            'sh',
            input.prompt,
            input.newSession,
            shellWords(input.hooks?.command ?? []),
          ],
    env: {},
    files: [{ to: SCRIPT, content: DEMO }],
    homeFiles: [],
  }),
  drive: readEventLines,
};

/** Its hooks speak our own words already. */
function readHook(event: string, json: unknown): GateRequest | null {
  if (event !== 'before' && event !== 'after' && event !== 'stop') return null;
  if (typeof json !== 'object' || json === null) return null;
  const { tool, action } = json as { tool?: unknown; action?: unknown };
  if (typeof tool !== 'string' || typeof action !== 'object' || action === null) return null;
  return { when: event, tool, actions: [action as Action], input: json };
}

function shellWords(argv: readonly string[]): string {
  return argv.map((word) => `'${word.replaceAll("'", "'\\''")}'`).join(' ');
}
