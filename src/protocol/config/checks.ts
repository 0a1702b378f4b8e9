// protocol/config/checks.ts: the key `checks`, commands that must pass before a merge: a list, or a list with a timeout.
import { z } from 'zod';
import { list, section, text, words } from './forms.ts';
import { DURATION, WORDS } from './words.ts';

const checkList = list(
  z.union(
    [
      words('a command'),
      section({
        name: words('a name for it such as types')
          .meta({ description: 'Its name in output. Default: the command itself.' })
          .optional(),
        run: words('a command such as npm test').meta({ description: 'A command for `sh -c`.' }),
      }),
    ],
    { error: WORDS.check },
  ),
  'commands',
);

export const checks = z
  .union(
    [
      checkList,
      section({
        run: checkList.meta({
          description: 'The commands, in the form with a timeout.',
          examples: [['npm test']],
        }),
        timeout: text(DURATION, WORDS.duration).meta({
          description: 'Time limit of all checks together.',
          examples: ['30m'],
        }),
      }).partial(),
    ],
    { error: WORDS.checks },
  )
  .meta({
    description:
      'Commands for `sh -c` that must pass before a merge (`ags check`). Each runs in a fresh sandbox over exactly the merged tree, with the network rules of the project and without its secrets. With a timeout: `checks: { run: [...], timeout: 10m }`.',
    examples: [['npm test', { name: 'types', run: 'npx tsc --noEmit' }]],
  });
