// protocol/config/checks.ts: commands that must pass before a merge, as they are written: a list, or a list with a time.
import { z } from 'zod';
import { list, section, text, words } from './forms.ts';
import { DURATION, WORDS } from './words.ts';

const checkList = list(
  z.union(
    [
      words('a command'),
      section({
        name: words('what it is called').meta({ description: 'What it is called; without it, the command itself.' }),
        run: words('a command').meta({ description: 'A command for `sh -c`.' }),
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
          description: 'The commands, where there is a timeout beside them.',
          examples: [['npm test']],
        }),
        timeout: text(DURATION, WORDS.duration).meta({
          description: 'How long all of them together may take.',
          examples: ['30m'],
        }),
      }).partial(),
    ],
    { error: WORDS.checks },
  )
  .meta({
    description:
      'Commands for `sh -c` that must pass before a merge (`ags check`). Each runs in a fresh sandbox over exactly what the branch would be after the merge, with the network rules of the project and without its secrets. With a timeout: `checks: { run: [...], timeout: 10m }`.',
    examples: [['npm test', { name: 'types', run: 'npx tsc --noEmit' }]],
  });
