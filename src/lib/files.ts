// lib/files.ts: writes small files completely or not at all, and removes trees no matter what an agent did to them.
import { spawn, spawnSync } from 'node:child_process';
import {
  chmodSync,
  closeSync,
  existsSync,
  fsyncSync,
  lchownSync,
  lstatSync,
  openSync,
  readdirSync,
  renameSync,
  rmdirSync,
  rmSync,
  statSync,
  unlinkSync,
  writeFileSync,
  type Dirent,
} from 'node:fs';
import { join } from 'node:path';
import { hostPath, type Layer } from '../protocol/spec.ts';

/** A reader sees the old file or the new one, never a part; with `durable` also after a power cut. */
export function replaceFile(path: string, content: string | Buffer, options: { durable?: boolean } = {}): void {
  const temporary = `${path}.${process.pid}.tmp`;
  const fd = openSync(temporary, 'w', 0o600);
  try {
    // Not writeSync, which may write only a part without an error when the disk is nearly full.
    writeFileSync(fd, content);
    if (options.durable === true) fsyncSync(fd);
  } catch (error) {
    rmSync(temporary, { force: true });
    throw error;
  } finally {
    closeSync(fd);
  }
  renameSync(temporary, path);
}

/** True if `path` is the directory or below it. Both are absolute and normalised. */
export function isWithin(path: string, directory: string): boolean {
  return path === directory || directory === '/' || path.startsWith(`${directory}/`);
}

/** Identifies a directory while it exists, wherever its path leads later. */
export function directoryIdentity(path: string): string {
  const { dev, ino } = statSync(path, { bigint: true });
  return `${dev},${ino}`;
}

/** A directory as a layer of a workspace, with the identity it must still have when it is mounted. */
export function layerAt(path: string): Layer {
  return { path: hostPath(path), identity: directoryIdentity(path) };
}

/** Removes a tree that a sandbox wrote in: directories without permission bits, paths longer than the system's limit. */
export function removeTree(path: string): void {
  try {
    removePlain(path);
  } catch {
    // rm and chmod walk by descriptor, without following links, and so reach overlong paths.
    spawnSync('chmod', ['-R', 'u+rwX', '--', path], { stdio: 'ignore' });
    spawnSync('rm', ['-rf', '--one-file-system', '--', path], { stdio: 'ignore' });
    if (existsSync(path)) rmSync(path, { recursive: true, force: true });
  }
}

/** False: something is still mounted in it, for example by a container that is just ending. */
export function tryRemoveTree(path: string): boolean {
  try {
    removeTree(path);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EBUSY') return false;
    throw error;
  }
}

// Node's recursive removal inspects every entry three times; a run has many small directories.
function removePlain(path: string): void {
  const stat = lstatSync(path, { throwIfNoEntry: false });
  if (stat === undefined) return;
  if (!stat.isDirectory()) return unlinkSync(path);
  const visit = (dir: string): void => {
    for (const entry of listOpened(dir)) {
      const child = join(dir, entry.name);
      if (entry.isDirectory()) visit(child);
      else unlinkSync(child);
    }
    rmdirSync(dir);
  };
  visit(path);
}

// Overlayfs leaves a directory without permission bits in every run.
function listOpened(dir: string): Dirent[] {
  try {
    return readdirSync(dir, { withFileTypes: true });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EACCES') throw error;
    chmodSync(dir, 0o700);
    return readdirSync(dir, { withFileTypes: true });
  }
}

/** Changes the owner of a small tree that only we have written. Does nothing unless the caller is root. */
export function giveTree(path: string | Buffer, owner: { uid: number; gid: number }): void {
  if (process.getuid?.() !== 0 || !existsSync(path)) return;
  lchownSync(path, owner.uid, owner.gid);
  for (const entry of readdirSync(path, { withFileTypes: true, encoding: 'buffer' })) {
    const child = Buffer.concat([Buffer.from(path), Buffer.from('/'), entry.name]);
    if (entry.isDirectory()) giveTree(child, owner);
    else lchownSync(child, owner.uid, owner.gid);
  }
}

/** Like `removeTree`, without blocking this process. */
export async function removeAside(path: string): Promise<void> {
  const quietly = (program: string, ...args: string[]): Promise<void> =>
    new Promise((resolve) => {
      spawn(program, [...args, '--', path], { stdio: 'ignore' })
        .on('close', () => resolve())
        .on('error', () => resolve());
    });
  if (!existsSync(path)) return;
  await quietly('rm', '-rf', '--one-file-system');
  if (!existsSync(path)) return;
  await quietly('chmod', '-R', 'u+rwX');
  await quietly('rm', '-rf', '--one-file-system');
  if (existsSync(path)) removeTree(path);
}
