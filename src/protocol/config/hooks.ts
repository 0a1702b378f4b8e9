// protocol/config/hooks.ts: the key `hooks`.
import { z } from 'zod';
import { flag, list, section, text, words } from './forms.ts';
import { HOOK_TIME, WORDS } from './words.ts';
import { HOOK_POINTS, READY_HOOKS, type HookPoint } from '../hook.ts';

const hookList = (when: string) =>
  list(
    section({
      run: z
        .union([words(WORDS.hookRun), list(words('a word of the command'), 'words').min(1, { error: WORDS.hookRun })], {
          error: WORDS.hookRun,
        })
        .meta({ description: 'A program with its arguments as a list, or a text for `sh -c`.' }),
      timeout: text(HOOK_TIME, WORDS.hookTime)
        .optional()
        .meta({ description: 'Time limit; a hook that exceeds it refuses.', examples: ['10s'] }),
      inside: flag.optional().meta({
        description:
          'Run it in the sandbox, in the project, instead of on this machine. The agent can interfere there.',
      }),
    }),
    'hooks such as - run: [program, argument]',
  ).meta({ description: when, examples: [[{ run: ['my-check', '--strict'] }]], needsTrust: 'on this machine' });

const HOOK_WORDS = {
  'pre-any': 'Runs before every action of an agent.',
  'pre-bash': 'Runs before every command.',
  'pre-writes': 'Runs before a file is written.',
  'post-writes': 'Runs after a file was written; the agent sees a refusal.',
  'post-stop':
    'Runs when a turn of the agent has ended; a refusal sends it back to work, at most five times in a row, then the task has failed.',
} as const satisfies Record<HookPoint, string>;

export const hooks = section({
  use: list(z.enum(READY_HOOKS, { error: WORDS.readyHook }), `names: ${WORDS.readyHook}`).meta({
    description:
      'Hooks that come with ags. log: writes every action to a file of the task. protect-branches: refuses pushes to main, master and release/*. no-secrets: refuses keys in files. format: runs the formatter of the project after writes.',
    examples: [['log', 'protect-branches', 'no-secrets']],
  }),
  timeout: text(HOOK_TIME, WORDS.hookTime).meta({
    description: 'Time limit of hooks without one of their own; a hook that exceeds it refuses.',
    examples: ['10s'],
  }),
  ...(Object.fromEntries(HOOK_POINTS.map((point) => [point, hookList(HOOK_WORDS[point])])) as Record<
    HookPoint,
    ReturnType<typeof hookList>
  >),
})
  .partial()
  .meta({
    description:
      'Programs that approve or refuse actions of agents. They read JSON from standard input; exit status 0 allows, 2 refuses, and any other refuses as well. Executable files in .ags/hooks/ are hooks too. See `ags help hooks`.',
  });
