// workspace/copy-layers.ts: makes an agent's workspace without an overlay: copies its layers one over the other.
import { lstatSync, mkdirSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { AgsError } from '../protocol/errors.ts';
import { run } from '../lib/process/process.ts';

export async function copyLayers(input: {
  /** Topmost first. */
  layers: readonly string[];
  to: string;
  hidden: readonly string[];
}): Promise<void> {
  mkdirSync(input.to, { mode: 0o755 });
  for (const layer of input.layers.toReversed()) {
    for (const path of covered(layer, input.to)) rmSync(path, { recursive: true, force: true });
    await copy(layer, input.to);
    removeWhiteouts(input.to, layer);
  }
  for (const path of input.hidden) rmSync(join(input.to, path), { recursive: true, force: true });
  mkdirSync(join(input.to, '.git'), { recursive: true });
}

type Bytes = Buffer;

/** Finds the paths in `to` that this layer deletes, or replaces with another type of file. */
function covered(layer: string, to: string): Bytes[] {
  const found: Bytes[] = [];
  walk(Buffer.from(layer), Buffer.from(to), (above, below) => {
    const under = lstatSync(below, { throwIfNoEntry: false });
    if (under === undefined) return false;
    const both = under.isDirectory() && lstatSync(above).isDirectory();
    if (!both) found.push(below);
    return both;
  });
  return found;
}

function removeWhiteouts(to: string, layer: string): void {
  walk(Buffer.from(layer), Buffer.from(to), (above, below) => {
    const stat = lstatSync(above);
    if (stat.isCharacterDevice()) rmSync(below, { force: true });
    return stat.isDirectory();
  });
}

/** Descends where `visit` returns true. */
function walk(layer: Bytes, to: Bytes, visit: (above: Bytes, below: Bytes) => boolean): void {
  for (const name of readdirSync(layer, { encoding: 'buffer' })) {
    const [above, below] = [beneath(layer, name), beneath(to, name)];
    if (visit(above, below) && lstatSync(above).isDirectory()) walk(above, below, visit);
  }
}

function beneath(dir: Bytes, name: Bytes): Bytes {
  return Buffer.concat([dir, Buffer.from('/'), name]);
}

async function copy(from: string, to: string): Promise<void> {
  const done = await run(
    ['cp', '-a', '--reflink=auto', '--no-preserve=ownership,xattr,context', '--', `${from}/.`, to],
    { env: { PATH: '/usr/bin:/bin' } },
  );
  if (done.exitCode === 0) return;
  const full = /No space left/.test(done.stderr);
  throw new AgsError(
    full ? 'disk.full' : 'backend.failed',
    `The snapshot could not be copied: ${done.stderr.trim().split('\n').at(-1) ?? ''}`,
    { hint: full ? 'Free some space: ags cleanup' : 'Check that every file of the project is readable.' },
  );
}
