// cli/image-inside.ts: `ags image` in a dev container: says how it is built, and handles the images of its engine, if it has one.
import { spawn } from 'node:child_process';
import { AgsError, EXIT } from '../protocol/errors.ts';
import { visible } from '../lib/sanitize.ts';
import { planImageInside } from '../images/devcontainer-engine-images.ts';
import { INSIDE } from '../images/devcontainer/inside.ts';
import type { Context } from './verb.ts';

const REBUILD = 'devcontainer up --workspace-folder . --remove-existing-container';

export async function imageInside(word: string, names: readonly string[], ctx: Context): Promise<number> {
  if (word === 'list')
    ctx.stdout.write(`This dev container is built from ${INSIDE.settings}/Dockerfile, outside, with: ${REBUILD}\n`);
  const argv = planImageInside(ctx.host, word, names);
  if (argv !== null) return docker(argv);
  if (word === 'list') return EXIT.done;
  throw new AgsError('backend.unavailable', 'There is no engine in this dev container: its image is built outside.', {
    hint: `Change .devcontainer/Dockerfile, then outside: ${REBUILD}\nTo add an engine: ags devcontainer init --docker --force`,
  });
}

/** Runs in the same terminal; ags exits with the same code. */
function docker([program = '', ...args]: readonly string[]): Promise<number> {
  return new Promise((resolve, reject) => {
    spawn(program, args, { stdio: 'inherit' })
      .on('error', (cause) =>
        reject(
          new AgsError('backend.unavailable', `${visible(program)} is not in this dev container.`, {
            hint: `Add it to .devcontainer/Dockerfile, then outside: ${REBUILD}`,
            cause,
          }),
        ),
      )
      .on('close', (code) => resolve(code ?? 1));
  });
}
