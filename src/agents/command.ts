// agents/command.ts: any program as an agent: it reads the goal from standard input. If it prints events of ags, one JSON
// object per line, ags reads them; other output is shown as it is. Hooks observe its actions and cannot stop them.
import { readEventLines } from './event-lines.ts';
import type { Agent } from './agent.ts';

/** For one command line, as the user typed it. */
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
