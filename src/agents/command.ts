// agents/command.ts: any program as an agent: it reads the goal from standard input. If it prints events of ags, one JSON
// object per line, ags reads them; other output is shown as it is. Hooks observe its actions and cannot stop them.
import { readEventLines } from './event-lines.ts';
import type { Agent, OwnModel } from './agent.ts';

/** What it speaks is a matter of the command. */
const OWN: OwnModel = {
  protocol: 'whatever the command speaks',
  header: 'authorization',
  env: 'AGS_MODEL_KEY',
  endpoint: 'AGS_MODEL_URL',
  variable: null,
  needsModel: false,
  trial: { path: '/models' },
};

/** For one command line, as the user typed it. */
export function commandAgent(argv: readonly string[]): Agent {
  return {
    name: 'command',
    title: argv[0] ?? 'command',
    install: null,
    signIns: [],
    own: OWN,
    settings: [],
    hosts: [],
    scratch: [],
    gate: 'observed',
    resumes: false,
    readHook: null,
    plan: ({ prompt, session, newSession, task, model }) => ({
      argv,
      env: {
        AGS_GOAL: prompt.slice(0, 65_536),
        AGS_SESSION: session ?? newSession,
        AGS_TASK: task,
        ...(model === null ? {} : { AGS_MODEL: model }),
      },
      files: [],
      homeFiles: [],
    }),
    drive: readEventLines,
  };
}
