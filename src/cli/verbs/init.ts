// cli/verbs/init.ts: `ags init`: writes an ags.yaml for the project, or one with every key explained and commented out.
import { lstatSync } from 'node:fs';
import { join } from 'node:path';
import { AgsError, EXIT } from '../../protocol/errors.ts';
import { findProject } from '../../run/project.ts';
import type { Context, Verb } from '../verb.ts';

const verb: Verb = {
  summary: 'write an ags.yaml for this project',
  usage: 'init [--full] [--force] [--print]',
  takes: 0,
  instead: 'Go into the project first, then: ags init',
  about:
    'ags looks at the files of the project (package managers, lockfiles, test commands, compose files) and writes the few lines that it\nneeds: setup, checks and services. It runs nothing of the project. With --full, the file explains every key; all are commented out, so it changes nothing.',
  examples: ['ags init', 'ags init --print', 'ags init --full --print', 'ags init --force'],
  options: {
    full: { type: 'boolean', about: 'Every key, explained and commented out' },
    force: { type: 'boolean', about: 'Replace an existing ags.yaml' },
    print: { type: 'boolean', about: 'Write to standard output instead of a file' },
  },
  async run({ values }, ctx) {
    const full = values['full'] === true;
    if (full && values['print'] === true) {
      ctx.stdout.write((await import('../../config/file/template.ts')).configTemplate());
      return EXIT.done;
    }
    const { root } = await findProject({
      cwd: ctx.cwd,
      home: ctx.home,
      stateDir: ctx.stateDir,
      cacheDir: ctx.cacheDir,
      configHome: ctx.env['XDG_CONFIG_HOME'],
    });
    const { text, said } = full
      ? {
          text: (await import('../../config/file/template.ts')).configTemplate(),
          said: '. Everything in it is commented out; uncomment what you need.',
        }
      : await starterFor(ctx, root);
    if (values['print'] === true) {
      ctx.stdout.write(text);
      return EXIT.done;
    }
    const path = join(root, 'ags.yaml');
    const there = lstatSync(path, { throwIfNoEntry: false });
    if (there?.isDirectory() === true)
      throw new AgsError('usage.invalid', 'ags.yaml is a directory.', { hint: 'Move it away, then: ags init' });
    if (values['force'] !== true && there !== undefined)
      throw new AgsError('usage.invalid', 'ags.yaml already exists.', { hint: 'To replace it: ags init --force' });
    const { writeWhole } = await import('../../config/file/edit-file.ts');
    writeWhole(path, text, 0o644);
    ctx.stderr.write(`Wrote ags.yaml${said}\n`);
    return EXIT.done;
  },
};

export default verb;

async function starterFor(ctx: Context, root: string): Promise<{ text: string; said: string }> {
  const { planStarter, starterText } = await import('../../config/starter/starter.ts');
  const { readRootFiles } = await import('../../projects/root-files.ts');
  const { missingOf, missingPrograms } = await import('../../services/view.ts');
  using files = readRootFiles(root);
  const starter = planStarter(files, {
    programs: (names) => missingOf(ctx.host, names),
    preset: (preset, version) => missingPrograms(ctx.host, preset, version),
  });
  const here = <T>(list: readonly { value: T; missing: readonly string[] }[]): T[] =>
    list.filter(({ missing }) => missing.length === 0).map(({ value }) => value);
  const found = Object.entries({
    setup: here(starter.setup),
    checks: here(starter.checks),
    services: here(starter.services).map(({ name }) => name),
  })
    .filter(([, list]) => list.length > 0)
    .map(([key, list]) => `${key} (${list.join(', ')})`);
  const all = [...starter.setup, ...starter.checks, ...starter.services];
  const missing = [...new Set(all.flatMap((one) => one.missing))];
  const said = [
    found.length > 0
      ? `: ${found.join(', ')}.`
      : missing.length > 0
        ? '.'
        : '; nothing was found that sandboxes of this project need.',
    ...(missing.length > 0 ? [`Commented out, because this machine does not have it: ${missing.join(', ')}.`] : []),
    'Check it, then see the plan: ags plan',
  ];
  return { text: starterText(starter), said: said.join(' ') };
}
