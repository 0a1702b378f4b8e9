// store/layers.ts: where the layers of a project are, and which of them count.
// Invariant: a layer has its name only when it is complete; whatever else lies there counts for nothing. One that was made just
// before the machine went down may have lost contents that were never on the disk: it does not count either.
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

/** What `layer.json` says. */
export interface LayerFile {
  readonly version: 1;
  readonly kind: 'base' | 'setup' | 'data';
  /** Of a base: the commit, and the names of the layers it stands on, topmost first, its own among them unless it is empty. */
  readonly commit: string;
  readonly layers: readonly string[];
  /** Entries of the index; changes are counted in `changed`, all of them in a layer that is whole. */
  readonly entries: number;
  readonly changed: number;
  /** Of a setup layer: what it adds to the tree, and directories it shares with it. */
  readonly roots: readonly string[];
  readonly shared: readonly string[];
  /** The boot in which it was made. */
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

/** Of one project; a short hash may be another's, so its path is part of every name that is looked up. */
export function projectLayers(stateDir: string, project: string): string {
  return join(layersDir(stateDir), shortHash(project));
}

const MAKING = '.new-';
const REMOVING = '.removing-';

/** null: it is not there, or does not count. */
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

/** Whoever removes old layers looks at this time. */
export function touchLayer(layer: Pick<StoredLayer, 'root'>, now: Date): void {
  utimesSync(join(layer.root, 'used'), now, now);
}

/** A place to make a layer in. Its name is nobody else's: a program of a maker that was killed may still be writing in another. */
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
  // What has the name does not count, or nobody would have made it again.
  discard(root);
  renameSync(made, root);
  markWhenSynced(root);
  const stored = readLayer(dir, name);
  if (stored === null) throw new Error(`${root} is not the layer that was made`);
  return stored;
}

/** Removes it so that at no moment a part of it has its name. */
export function discard(root: string): void {
  const going = putAside(root);
  if (going !== null) removeTree(going);
}

/** Its name is free at once; whoever waits need not wait for the disk. */
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

/** null: somebody else makes or removes layers of this project. */
export function lockLayers(dir: string): Disposable | null {
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  return tryLock(join(dir, 'lock'));
}

/** What cannot be removed now, because a program of a maker that was killed still writes there, is for the next one. */
export function sweepUnfinished(dir: string): void {
  for (const path of unfinishedLayers(dir)) {
    try {
      removeTree(path);
    } catch {
      continue;
    }
  }
}

/** What makers and removers that were killed have left. */
export function unfinishedLayers(dir: string): string[] {
  if (!existsSync(dir)) return [];
  return readdirSync(dir)
    .filter((name) => name.startsWith(REMOVING) || (name.startsWith(MAKING) && !existsSync(`/proc/${makerOf(name)}`)))
    .map((name) => join(dir, name));
}

function makerOf(name: string): string {
  return name.slice(MAKING.length).split('-')[0] ?? '';
}

// Takes as long as the disk needs; nobody waits for it.
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
