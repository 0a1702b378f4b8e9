// run/copy-project.ts: the workspace where overlays do not work: a full copy, with reflinks where the file system supports them.
import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { AgsError } from '../protocol/errors.ts';
import { run } from '../lib/process/process.ts';

export async function copyProject(input: {
  from: string;
  to: string;
  hidden: readonly string[];
  git: boolean;
}): Promise<void> {
  mkdirSync(input.to);
  // Hidden files are removed from the copy before the sandbox starts, so nothing inside ever sees them.
  const exclude = [...input.hidden, ...(input.git ? ['.git'] : [])];
  const source = await run(
    ['cp', '-a', '--reflink=auto', '--no-preserve=ownership,xattr,context', '--', `${input.from}/.`, input.to],
    { env: { PATH: '/usr/bin:/bin' } },
  );
  for (const path of exclude) rmSync(join(input.to, path), { recursive: true, force: true });
  if (source.exitCode === 0) {
    if (input.git) mkdirSync(join(input.to, '.git'), { recursive: true });
    return;
  }
  const full = /No space left/.test(source.stderr);
  throw new AgsError(
    full ? 'disk.full' : 'backend.failed',
    `The project could not be copied: ${source.stderr.trim().split('\n').at(-1) ?? ''}`,
    {
      hint: full ? 'Free some space: ags cleanup' : 'Is every file readable?',
    },
  );
}
