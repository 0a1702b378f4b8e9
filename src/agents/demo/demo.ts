// agents/demo/demo.ts: a scripted agent without key or account, for newcomers, the demo and tests.
import { perlProgram } from '../../lib/perl.ts';
import type { GateRequest } from '../../protocol/hook.ts';
import type { Action } from '../../protocol/agent-event.ts';
import { readEventLines } from '../event-lines.ts';
import type { Agent } from '../agent.ts';

const SCRIPT = '/run/ags/demo-agent';

export const demo: Agent = {
  name: 'demo',
  title: 'Demo agent',
  install: null,
  signIns: [],
  own: null,
  settings: [],
  hosts: [],
  scratch: [],
  gate: 'enforced',
  resumes: true,
  drawsAtWork: true,
  readHook,
  plan: (input) => ({
    // In a terminal, standard input is not free for the goal.
    argv:
      input.mode === 'headless'
        ? ['perl', SCRIPT, input.session ?? input.newSession, shellWords(input.hooks?.command ?? [])]
        : [
            'sh',
            '-c',
            `printf %s "$1" | perl ${SCRIPT} "$2" "$3" in-terminal; exec "\${SHELL:-/bin/sh}"`,
            'sh',
            input.prompt,
            input.newSession,
            shellWords(input.hooks?.command ?? []),
          ],
    env: {},
    files: [{ to: SCRIPT, content: perlProgram('agents/demo/demo.pl') }],
    homeFiles: [],
  }),
  drive: readEventLines,
};

/** Its hook requests already have the form of ags. */
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
