// config/file/cache.ts: a cache of parsed layers, so that a command that finds the same files again loads neither yaml nor zod.
// Invariant: an entry's name is the hash of everything its content depends on, and the content carries its own hash. A damaged,
// foreign or unreadable entry counts as missing. Trust in a project is never part of an entry.
import { createHash } from 'node:crypto';
import {
  closeSync,
  constants,
  fstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
} from 'node:fs';
import { join } from 'node:path';
import { replaceFile } from '../../lib/files.ts';
import { readPackageFile } from '../../lib/package-file.ts';
import type { Layer } from './layer.ts';
import type { LayerFile } from './read.ts';

export async function readLayers(
  files: readonly LayerFile[],
  context: { cacheDir: string; home: string },
): Promise<readonly Layer[]> {
  const path = join(context.cacheDir, `config-${entryName(files, context.home)}.json`);
  const known = readEntry(path);
  if (known) return known;
  const { parseLayer } = await import('./parse.ts');
  const layers = files.map(parseLayer);
  writeEntry(path, layers, context.cacheDir);
  return layers;
}

/** Raise it when the form of a layer changes without a new version of the package. */
const FORMAT = 2;
const KEPT = 32;

function entryName(files: readonly LayerFile[], home: string): string {
  const hash = createHash('sha256');
  const part = (data: string | Uint8Array): void => void hash.update(`${data.length}:`).update(data);
  part(`${FORMAT}`);
  part(readPackageFile());
  part(home);
  for (const file of files) {
    part(file.kind);
    part(file.label);
    part(file.bytes);
  }
  return hash.digest('hex');
}

function checksum(layers: readonly Layer[]): string {
  return createHash('sha256').update(JSON.stringify(layers)).digest('hex');
}

function readEntry(path: string): readonly Layer[] | undefined {
  let fd = -1;
  try {
    fd = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    const stat = fstatSync(fd);
    if (!stat.isFile() || stat.uid !== process.geteuid?.() || (stat.mode & 0o022) !== 0) return undefined;
    const entry = JSON.parse(readFileSync(fd, 'utf8')) as { sha256?: unknown; layers?: unknown };
    if (!Array.isArray(entry.layers)) return undefined;
    const layers = entry.layers as readonly Layer[];
    return entry.sha256 === checksum(layers) ? layers : undefined;
  } catch {
    // Missing or damaged: the caller parses the files again.
    return undefined;
  } finally {
    if (fd >= 0) closeSync(fd);
  }
}

// An unwritable cache (a read-only home, a full disk) costs time at each start and nothing else.
function writeEntry(path: string, layers: readonly Layer[], cacheDir: string): void {
  try {
    mkdirSync(cacheDir, { recursive: true, mode: 0o700 });
    replaceFile(path, JSON.stringify({ sha256: checksum(layers), layers }));
    dropOldest(cacheDir);
  } catch {
    return;
  }
}

function dropOldest(cacheDir: string): void {
  const entries = readdirSync(cacheDir)
    .filter((name) => /^config-[0-9a-f]{64}\.json$/.test(name))
    .map((name) => ({ path: join(cacheDir, name), usedAtMs: statSync(join(cacheDir, name)).mtimeMs }))
    .toSorted((a, b) => b.usedAtMs - a.usedAtMs);
  for (const { path } of entries.slice(KEPT)) rmSync(path, { force: true });
}
