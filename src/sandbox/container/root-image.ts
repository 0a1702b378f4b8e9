// sandbox/container/root-image.ts: the root image of a container that runs this machine's programs. It holds only directories and links,
// which an engine cannot mount, and is made once for each kind of plan.
import { createHash } from 'node:crypto';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { run } from '../../lib/process/process.ts';
import { AgsError } from '../../protocol/errors.ts';
import type { RootImageEntry } from './mounts.ts';
import { askEngine, callEngine, type Engine } from '../engine/engine.ts';
import { importArgs } from '../engine/images.ts';

interface User {
  readonly uid: number;
  readonly gid: number;
}

export function rootImageName(entries: readonly RootImageEntry[], { uid, gid }: User): string {
  const hash = createHash('sha256').update(JSON.stringify([entries, uid, gid]));
  return `ags-skeleton:${hash.digest('hex').slice(0, 32)}`;
}

export async function ensureRootImage(
  engine: Engine,
  entries: readonly RootImageEntry[],
  user: User,
  runDir: string,
): Promise<void> {
  const name = rootImageName(entries, user);
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
    // With a name: tar turns a large number alone into zero.
    const owner = ['--format=posix', `--owner=ags:${user.uid}`, `--group=ags:${user.gid}`, '--mtime=@0'];
    const packed = await run(['tar', ...owner, '--sort=name', '-C', dir, '-cf', '-', '.'], {
      env: { PATH: '/usr/bin:/bin' },
    });
    if (packed.exitCode !== 0)
      throw new AgsError('backend.failed', `The image of the sandbox could not be packed: ${packed.stderr.trim()}`);
    await callEngine(engine, [...importArgs('skeleton'), name], packed.stdout);
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}
