// protocol/config/hooks.ts: the part of the configuration about hooks.
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
        .meta({ description: 'How long it may take; longer is a no.', examples: ['10s'] }),
      inside: flag.optional().meta({
        description:
          'Run it in the sandbox, in the project, instead of on this machine. The agent can interfere there.',
      }),
    }),
    'hooks such as - run: [program, argument]',
  ).meta({ description: when, examples: [[{ run: ['my-check', '--strict'] }]], needsTrust: 'on this machine' });

const HOOK_WORDS = {
  'pre-any': 'Asked before whatever an agent does.',
  'pre-bash': 'Asked before every command.',
  'pre-writes': 'Asked before a file is written.',
  'post-writes': 'Run after a file was written; a no is shown to the agent.',
  'post-stop': 'Run when the agent says that it is done; a no sends it back to work.',
} as const satisfies Record<HookPoint, string>;

export const hooks = section({
  use: list(z.enum(READY_HOOKS, { error: WORDS.readyHook }), `names: ${WORDS.readyHook}`).meta({
    description:
      'Hooks that come with ags. log: every action, in a file of the task. protect-branches: no push to main, master or release/*. no-secrets: no keys in files. format: the formatter of the project, after writes.',
    examples: [['log', 'protect-branches', 'no-secrets']],
  }),
  timeout: text(HOOK_TIME, WORDS.hookTime).meta({
    description: 'How long a hook may take that says nothing else; longer is a no.',
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
      'Programs that are asked about what agents do: JSON on their standard input; exit 0 allows, 2 refuses, anything else refuses as well. Executable files in .ags/hooks/ are hooks too. See `ags help hooks`.',
  });
