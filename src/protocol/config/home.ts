// protocol/config/home.ts: the key `home`, for the home of sandboxes: `home: project`, or keys.
import { flag, section, text } from './forms.ts';
import { HOME, WORDS } from './words.ts';

export const home = section({
  keep: text(HOME, WORDS.home).meta({
    description:
      'task: each task has an empty home. project: one home for all tasks of a project, in the data directory of ags. A directory such as `~/aihome`: the same, below that directory. Whatever one task leaves there, the next one finds.',
    examples: ['project'],
    needsTrust: true,
  }),
  shared: flag.meta({
    description: 'With a directory: one home for all projects that use it, instead of one for each.',
    examples: [false],
    needsTrust: true,
  }),
})
  .partial()
  .meta({
    description:
      'The home of commands and agents inside, never your real one ([tasks.md](../start/tasks.md#a-home-that-stays)). `home: project` is short for `keep`.',
  });
