// sandbox/container/root-image.ts: the image that a container stands on when its programs are those of this machine: empty but for
// directories and links, which an engine cannot mount. Made once for each kind of plan.
import { createHash } from 'node:crypto';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { run } from '../../lib/process/process.ts';
import { AgsError } from '../../protocol/errors.ts';
import type { SkeletonEntry } from './mounts.ts';
import { askEngine, tellEngine, type Engine } from '../engine/engine.ts';
import { importArgs } from '../engine/images.ts';

interface User {
  readonly uid: number;
  readonly gid: number;
}

export function skeletonName(entries: readonly SkeletonEntry[], { uid, gid }: User): string {
  const hash = createHash('sha256').update(JSON.stringify([entries, uid, gid]));
  return `ags-skeleton:${hash.digest('hex').slice(0, 32)}`;
}

export async function ensureSkeleton(
  engine: Engine,
  entries: readonly SkeletonEntry[],
  user: User,
  runDir: string,
): Promise<void> {
  const name = skeletonName(entries, user);
  if ((await askEngine(engine, ['image', 'inspect', '--format', '.', name])).exitCode === 0) return;
  const dir = mkdtempSync(join(runDir, 'skeleton-'));
  try {
    chmodSync(dir, 0o755);
    for (const entry of entries) {
      const path = join(dir, entry.path);
      mkdirSync('target' in entry ? dirname(path) : path, { recursive: true, mode: 0o755 });
      if ('target' in entry) symlinkSync(entry.target, path);
    }
    for (const entry of entries) if ('mode' in entry) chmodSync(join(dir, entry.path), Number.parseInt(entry.mode, 8));
    // With a name: of a large number alone tar makes zero.
    const owner = ['--format=posix', `--owner=ags:${user.uid}`, `--group=ags:${user.gid}`, '--mtime=@0'];
    const packed = await run(['tar', ...owner, '--sort=name', '-C', dir, '-cf', '-', '.'], {
      env: { PATH: '/usr/bin:/bin' },
    });
    if (packed.exitCode !== 0)
      throw new AgsError('backend.failed', `The image of the sandbox could not be packed: ${packed.stderr.trim()}`);
    await tellEngine(engine, [...importArgs('skeleton'), name], packed.stdout);
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}
