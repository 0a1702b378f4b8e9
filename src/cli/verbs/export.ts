// cli/verbs/export.ts: `ags export <task> [file]`.
import { resolve } from 'node:path';
import { EXIT } from '../../protocol/errors.ts';
import type { Verb } from '../verb.ts';

const verb: Verb = {
  summary: 'write a task into one file for another machine',
  usage: 'export <task> [file] [--thin] [--data] [--force]',
  takes: 2,
  about:
    'The file has the branch, the events, the network log, the goal and the rules of the task, and no secrets, credentials, variables or hidden files; `ags import` reads it. The default name is <task>.ags in this directory.',
  examples: [
    'ags export fix-login',
    'ags export fix-login /mnt/stick/fix-login.ags',
    'ags export @ --thin',
    'ags export fix-login --data',
  ],
  options: {
    thin: { type: 'boolean', about: 'leave out the history before the task' },
    data: { type: 'boolean', about: 'include the data of its services; the task must not be running' },
    force: { type: 'boolean', short: 'f', about: 'overwrite the file' },
    json: { type: 'boolean', about: 'print what was written as JSON' },
  },
  async run({ values, positionals }, ctx) {
    const { exportTask } = await import('../../transfer/export.ts');
    const { findWork } = await import('../../agent-run/find-work.ts');
    const { readableSize } = await import('../../lib/units.ts');
    const { visible } = await import('../../lib/sanitize.ts');
    const { meanwhile } = await import('../terminal/meanwhile.ts');
    const { readVersion } = await import('../../lib/package-file.ts');
    const stored = await findWork(ctx.host, positionals[0] ?? '@');
    const { name } = stored.task;
    const file = resolve(ctx.cwd, positionals[1] ?? `${name}.ags`);
    const wish = {
      file,
      thin: values['thin'] === true,
      data: values['data'] === true,
      overwrite: values['force'] === true,
      version: readVersion(),
    };
    const done = await meanwhile(ctx, `Writing ${visible(file)}`, exportTask(ctx.host, stored, wish));
    if (values['json'] === true) {
      ctx.stdout.write(`${JSON.stringify({ file, ...done })}\n`);
      return EXIT.done;
    }
    ctx.stdout.write(`${visible(file)}\n`);
    if (done.running) ctx.stderr.write(`ags: ${name} is running: its work since the last turn is not in the file.\n`);
    if (done.withoutData.length > 0)
      ctx.stderr.write(
        `ags: the data of its services (${done.withoutData.join(', ')}) is not in the file. To include it: ags export ${name} --data\n`,
      );
    if (done.leftOut.length > 0)
      ctx.stderr.write(`ags: these flags of the task are not in the file: ${visible(done.leftOut.join(', '))}\n`);
    const base = done.members.find((one) => one.name === 'base.pack');
    const history = base === undefined ? '' : `, of which ${readableSize(base.bytes)} are earlier history`;
    ctx.stderr.write(
      `ags: Exported ${name} (${readableSize(done.bytes)}${history}). On the other machine: ags import ${visible(positionals[1] ?? `${name}.ags`)}\n`,
    );
    return EXIT.done;
  },
};
export default verb;
