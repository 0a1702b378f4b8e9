// config/file/cache.ts: layers that were read before, so that a command that finds the same files again loads neither yaml nor zod.
// Invariant: the name of an entry is the hash of everything its content depends on, and the content carries its own hash: an entry
// that is damaged, foreign or unreadable counts as missing. Whether a project is trusted is never part of it.
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
import type { Layer } from './layer.ts';
import type { LayerFile } from './read.ts';

export async function readLayers(
  files: readonly LayerFile[],
  world: { cacheDir: string; home: string },
): Promise<readonly Layer[]> {
  const path = join(world.cacheDir, `config-${entryName(files, world.home)}.json`);
  const known = readEntry(path);
  if (known) return known;
  const { parseLayer } = await import('./parse.ts');
  const layers = files.map(parseLayer);
  writeEntry(path, layers, world.cacheDir);
  return layers;
}

/** Raised when what a layer looks like changes without a new version of the package. */
const FORMAT = 2;
const KEPT = 32;

function entryName(files: readonly LayerFile[], home: string): string {
  const hash = createHash('sha256');
  const part = (data: string | Uint8Array): void => void hash.update(`${data.length}:`).update(data);
  part(`${FORMAT}`);
  part(readFileSync(new URL('../../../../package.json', import.meta.url)));
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
    // Missing or damaged: it is made again from the files themselves.
    return undefined;
  } finally {
    if (fd >= 0) closeSync(fd);
  }
}

// A cache that cannot be written (a read-only home, a full disk) costs time on each start and nothing else.
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
