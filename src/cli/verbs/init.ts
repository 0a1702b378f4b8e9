// cli/verbs/init.ts: `ags init`: writes an ags.yaml with every key explained and commented out.
import { lstatSync } from 'node:fs';
import { join } from 'node:path';
import { AgsError, EXIT } from '../../protocol/errors.ts';
import { findProject } from '../../run/project.ts';
import type { Verb } from '../verb.ts';

const verb: Verb = {
  summary: 'write a commented ags.yaml',
  usage: 'init [--force] [--print]',
  takes: 0,
  instead: 'Go into the project first, then: ags init',
  about: 'The file explains every key. All keys are commented out, so the new file changes nothing.',
  examples: ['ags init', 'ags init --print', 'ags init --force'],
  options: {
    force: { type: 'boolean', about: 'replace an existing ags.yaml' },
    print: { type: 'boolean', about: 'write to standard output instead of a file' },
  },
  async run({ values }, ctx) {
    const { configTemplate } = await import('../../config/file/template.ts');
    if (values['print'] === true) {
      ctx.stdout.write(configTemplate());
      return EXIT.done;
    }
    const { root } = await findProject({
      cwd: ctx.cwd,
      home: ctx.home,
      stateDir: ctx.stateDir,
      cacheDir: ctx.cacheDir,
      configHome: ctx.env['XDG_CONFIG_HOME'],
    });
    const path = join(root, 'ags.yaml');
    if (values['force'] !== true && lstatSync(path, { throwIfNoEntry: false }))
      throw new AgsError('usage.invalid', 'ags.yaml already exists.', { hint: 'To replace it: ags init --force' });
    const { writeWhole } = await import('../../config/file/edit-file.ts');
    writeWhole(path, configTemplate(), 0o644);
    ctx.stderr.write('Wrote ags.yaml. Everything in it is commented out; uncomment what you need.\n');
    return EXIT.done;
  },
};

export default verb;
