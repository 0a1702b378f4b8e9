// cli/verbs/exec.ts: `ags exec -- <command>`.
import { AgsError } from '../../protocol/errors.ts';
import { RUN_OPTIONS, runFlags, runInSandbox } from '../run-options.ts';
import type { Verb } from '../verb.ts';

const verb: Verb = {
  summary: 'run a command on this repository in a fresh sandbox',
  usage: 'exec [options] -- <command> [arguments...]',
  takes: 'any',
  about:
    'The command sees the repository at its usual path, copy-on-write: the original is never written. Your home, your other\nprojects and the rest of the machine do not exist inside; the network has only hosts that rules allow (ags help network). Afterwards you review the changes.',
  examples: [
    'ags exec -- npm test',
    'ags exec --limit time=10m -- make',
    'ags exec --allow api.example.com --tcp db=localhost:5432 -- npm test',
    'ags exec --reveal .env -- ./run-with-secrets.sh',
    'git diff | ags exec -- python3 check.py | less',
  ],
  passthrough: true,
  options: RUN_OPTIONS,
  async run(args, ctx) {
    if (args.positionals.length === 0)
      throw new AgsError('usage.invalid', 'What should run in the sandbox?', {
        hint: 'For example: ags exec -- npm test',
      });
    return runInSandbox('exec', args.positionals, runFlags(args), args, ctx);
  },
};
export default verb;
