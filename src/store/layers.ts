// store/layers.ts: the stored layers of a project.
// Invariant: a layer gets its name only when it is complete; anything else in the directory is ignored. A layer that was made
// just before a crash of the machine may have lost contents that were not on the disk yet; it is ignored too.
import { spawn } from 'node:child_process';
import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { errorCode } from '../lib/error-code.ts';
import { removeTree } from '../lib/files.ts';
import { tryLock } from '../lib/process/lock.ts';
import { shortHash } from '../lib/short-hash.ts';

/** The content of `layer.json`. */
export interface LayerFile {
  readonly version: 1;
  readonly kind: 'base' | 'setup' | 'data';
  /** For a base: the commit, and the names of its layers, topmost first, including its own unless that is empty. */
  readonly commit: string;
  readonly layers: readonly string[];
  /** Entries of the index; `changed` counts the changes, in a full layer all entries. */
  readonly entries: number;
  readonly changed: number;
  /** For a setup layer: the paths it adds to the tree, and the directories it shares with the tree. */
  readonly roots: readonly string[];
  readonly shared: readonly string[];
  /** The ID of the boot in which it was made. */
  readonly boot: string;
}

export interface StoredLayer {
  readonly name: string;
  readonly root: string;
  readonly files: string;
  readonly index: string;
  readonly file: LayerFile;
  readonly usedAtMs: number;
}

export function layersDir(stateDir: string): string {
  return join(stateDir, 'layers');
}

/** The directory of one project. Another project may have the same short hash, so the path is part of every looked-up name. */
export function projectLayers(stateDir: string, project: string): string {
  return join(layersDir(stateDir), shortHash(project));
}

const MAKING = '.new-';
const REMOVING = '.removing-';

/** null: missing, or not usable. */
export function readLayer(dir: string, name: string): StoredLayer | null {
  const root = join(dir, name);
  try {
    const file = JSON.parse(readFileSync(join(root, 'layer.json'), 'utf8')) as LayerFile;
    if (file.version !== 1 || (file.boot !== bootId() && !existsSync(join(root, 'synced')))) return null;
    const usedAtMs = lstatSync(join(root, 'used')).mtimeMs;
    return { name, root, files: join(root, 'files'), index: join(root, 'index'), file, usedAtMs };
  } catch (error) {
    if (error instanceof SyntaxError || ['ENOENT', 'ENOTDIR'].includes(errorCode(error) ?? '')) return null;
    throw error;
  }
}

export function listLayers(dir: string): StoredLayer[] {
  if (!existsSync(dir)) return [];
  return readdirSync(dir)
    .filter((name) => /^(base|given|setup|data)-/.test(name))
    .flatMap((name) => readLayer(dir, name) ?? []);
}

/** Cleanup removes old layers by this time. */
export function touchLayer(layer: Pick<StoredLayer, 'root'>, now: Date): void {
  utimesSync(join(layer.root, 'used'), now, now);
}

/** A directory to make a layer in. Its name is unique: a program of a killed maker may still write to another one. */
export function beginLayer(dir: string): { root: string; files: string; index: string } {
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  const root = mkdtempSync(join(dir, `${MAKING}${process.pid}-`));
  const files = join(root, 'files');
  mkdirSync(files, { mode: 0o755 });
  return { root, files, index: join(root, 'index') };
}

export function finishLayer(
  dir: string,
  made: string,
  name: string,
  file: Omit<LayerFile, 'version' | 'boot'>,
): StoredLayer {
  const whole: LayerFile = { version: 1, ...file, boot: bootId() };
  writeFileSync(join(made, 'layer.json'), JSON.stringify(whole), { mode: 0o600 });
  writeFileSync(join(made, 'used'), '', { mode: 0o600 });
  const root = join(dir, name);
  // An existing directory of this name is not usable; otherwise the layer would not have been made again.
  discard(root);
  renameSync(made, root);
  markWhenSynced(root);
  const stored = readLayer(dir, name);
  if (stored === null) throw new Error(`${root} is not the layer that was made`);
  return stored;
}

/** Removes it so that no partial layer ever has its name. */
export function discard(root: string): void {
  const going = putAside(root);
  if (going !== null) removeTree(going);
}

/** Frees the name at once and removes the files in the background. */
export function discardLater(root: string): void {
  const going = putAside(root);
  if (going === null) return;
  const script = 'chmod -R u+rwX -- "$1"; rm -rf --one-file-system -- "$1"';
  inBackground(script, going);
}

function putAside(root: string): string | null {
  if (lstatSync(root, { throwIfNoEntry: false }) === undefined) return null;
  const going = mkdtempSync(join(root, '..', REMOVING));
  renameSync(root, join(going, 'layer'));
  return going;
}

/** null: another process makes or removes layers of this project. */
export function lockLayers(dir: string): Disposable | null {
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  return tryLock(join(dir, 'lock'));
}

/** A program of a killed maker may still write there; such a directory is left for the next sweep. */
export function sweepUnfinished(dir: string): void {
  for (const path of unfinishedLayers(dir)) {
    try {
      removeTree(path);
    } catch {
      continue;
    }
  }
}

/** Leftovers of killed makers and removers. */
export function unfinishedLayers(dir: string): string[] {
  if (!existsSync(dir)) return [];
  return readdirSync(dir)
    .filter((name) => name.startsWith(REMOVING) || (name.startsWith(MAKING) && !existsSync(`/proc/${makerOf(name)}`)))
    .map((name) => join(dir, name));
}

function makerOf(name: string): string {
  return name.slice(MAKING.length).split('-')[0] ?? '';
}

// Takes as long as the disk needs; no caller waits for it.
function markWhenSynced(root: string): void {
  inBackground('sync -f "$1" && : > "$1/synced"', root);
}

function inBackground(script: string, path: string): void {
  spawn('sh', ['-c', script, 'sh', path], { stdio: 'ignore', detached: true, cwd: '/', env: { PATH: '/usr/bin:/bin' } })
    .on('error', () => undefined)
    .unref();
}

function bootId(): string {
  return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
}
