// cli/verbs/export.ts: `ags export <task> [file]`.
import { resolve } from 'node:path';
import { EXIT } from '../../protocol/errors.ts';
import type { Verb } from '../verb.ts';

const verb: Verb = {
  summary: 'write a task into one file, for another machine',
  usage: 'export <task> [file] [--thin] [--data] [--force]',
  about:
    'Its branch with everything on it, what it did and said, what it reached, its goal and its rules; `ags import` brings it back. No secrets, credentials, variables or hidden files are in it. Without a file it is <task>.ags here.',
  examples: [
    'ags export fix-login',
    'ags export fix-login /mnt/stick/fix-login.ags',
    'ags export @ --thin',
    'ags export fix-login --data',
  ],
  options: {
    thin: { type: 'boolean', about: 'leave out what the repository had before the task' },
    data: { type: 'boolean', about: 'with the data of its services; it must not run meanwhile' },
    force: { type: 'boolean', short: 'f', about: 'overwrite the file' },
    json: { type: 'boolean', about: 'what was written, as JSON' },
  },
  async run({ values, positionals }, ctx) {
    const { exportTask } = await import('../../transfer/export.ts');
    const { findTask } = await import('../../queries/find-task.ts');
    const { formatSize } = await import('../../lib/units.ts');
    const { visible } = await import('../../lib/sanitize.ts');
    const { meanwhile } = await import('../terminal/meanwhile.ts');
    const { readVersion } = await import('../version.ts');
    const stored = await findTask(ctx.world, positionals[0] ?? '@', { work: true });
    const { name } = stored.task;
    const file = resolve(ctx.cwd, positionals[1] ?? `${name}.ags`);
    const wish = {
      file,
      thin: values['thin'] === true,
      data: values['data'] === true,
      overwrite: values['force'] === true,
      version: readVersion(),
    };
    const done = await meanwhile(ctx, `Writing ${visible(file)}`, exportTask(ctx.world, stored, wish));
    if (values['json'] === true) {
      ctx.stdout.write(`${JSON.stringify({ file, ...done })}\n`);
      return EXIT.done;
    }
    ctx.stdout.write(`${visible(file)}\n`);
    if (done.running)
      ctx.stderr.write(`ags: ${name} is running: what it did since its last turn is not in the file.\n`);
    if (done.withoutData.length > 0)
      ctx.stderr.write(
        `ags: the data of its services (${done.withoutData.join(', ')}) is not in the file; with it: ags export ${name} --data\n`,
      );
    if (done.leftOut.length > 0)
      ctx.stderr.write(`ags: of its flags these stay here: ${visible(done.leftOut.join(', '))}\n`);
    const base = done.members.find((one) => one.name === 'base.pack');
    const history = base === undefined ? '' : `, ${formatSize(base.bytes)} of it the repository as it was before`;
    ctx.stderr.write(
      `ags: ${name} is in it (${formatSize(done.bytes)}${history}). On the other machine: ags import ${visible(positionals[1] ?? `${name}.ags`)}\n`,
    );
    return EXIT.done;
  },
};
export default verb;
