// agents/command.ts: any program as an agent: it gets the goal on its standard input. If it prints events of ours, one JSON
// object a line, they are understood; anything else is shown as it is. What it does is observed, not gated.
import { readEventLines } from './event-lines.ts';
import type { Agent } from './agent.ts';

/** Made for one command line, as the user typed it. */
export function commandAgent(argv: readonly string[]): Agent {
  return {
    name: 'command',
    title: argv[0] ?? 'command',
    install: null,
    signIns: [],
    hosts: [],
    scratch: [],
    gate: 'observed',
    resumes: false,
    readHook: null,
    plan: ({ prompt, session, newSession, task }) => ({
      argv,
      env: { AGS_GOAL: prompt.slice(0, 65_536), AGS_SESSION: session ?? newSession, AGS_TASK: task },
      files: [],
      homeFiles: [],
    }),
    drive: readEventLines,
  };
}
