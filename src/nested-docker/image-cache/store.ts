// nested-docker/image-cache/store.ts: image parts that were fetched once, stored for all tasks of the user.
// Invariants: a file in blobs/ has the content that its name says, verified before it gets that name; only data from registries is
// written. A part is served for a repository only if the registry served it for that very repository. Stored and incoming parts of all
// processes together stay within the size of the cache.
import { createHash, randomUUID } from 'node:crypto';
import {
  createReadStream,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmdirSync,
  rmSync,
  statSync,
  utimesSync,
} from 'node:fs';
import { open, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import type { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { errorCode } from '../../lib/error-code.ts';
import { tryLock } from '../../lib/process/lock.ts';

/** Where a part comes from: "https://registry-1.docker.io/library/debian", or the whole registry. */
export type Place = string;

export interface Part {
  readonly digest: string;
  /** The media type. */
  readonly type: string;
  readonly bytes: number;
}

export interface Tag {
  readonly digest: string;
  readonly checkedAtMs: number;
}

export interface PartWriter {
  /** Rejects if there is no space, even after removing old parts. */
  write(chunk: Uint8Array): Promise<void>;
  /** True: the content matches the digest and is stored. */
  finish(): Promise<boolean>;
  abandon(): Promise<void>;
}

export interface ImageStore {
  /** What is known about the part in this place; null: the registry must be asked. */
  part(place: Place, digest: string): Part | null;
  read(digest: string, from?: number): Readable;
  begin(digest: string): Promise<PartWriter>;
  /** Records that the registry has the part in this place. */
  learn(place: Place, part: Part): Promise<void>;
  tag(place: Place, name: string): Tag | null;
  setTag(place: Place, name: string, tag: Tag): Promise<void>;
  /** One caller at a time, across all processes. */
  alone<T>(digest: string, work: () => Promise<T>): Promise<T>;
}

const LOOK_MS = 50;
/** Free space is checked after this many written bytes. */
const STEP_BYTES = 16 * 1024 ** 2;
const STEPS = 64;
/** The number of records kept, and after how many new ones of this process it is checked. */
const MOST_NOTES = 20_000;
const NOTES_STEP = 500;
/** Each part counts as at least one share of the cache, so that listing many tiny parts stays fast. */
const MOST_PARTS = 10_000;
/** How long a writer waits for others to finish or give up. */
const ROOM_MS = 60_000;
/** A partial file that was not written for this long belongs to a dead process. */
const ABANDONED_MS = 600_000;

export function openImageStore(dir: string, mostBytes: number, most = { notes: MOST_NOTES }): ImageStore {
  for (const name of ['blobs', 'known', 'tags', 'new', 'locks'])
    mkdirSync(join(dir, name), { recursive: true, mode: 0o700 });
  const blob = (digest: string): string => join(dir, 'blobs', hexOf(digest));
  const placeDir = (place: Place): string => join(dir, 'known', hash(place));
  const tagFile = (place: Place, name: string): string => join(dir, 'tags', hash(`${place}\n${name}`));
  let notes = 0;
  const noted = (): void => {
    if (notes++ % NOTES_STEP === 0) forgetNotes(dir, most.notes);
  };
  return {
    part(place, digest) {
      const known = readJson(join(placeDir(place), hexOf(digest))) as Part | null;
      if (known === null || !existsSync(blob(digest))) return null;
      touch(blob(digest));
      return known;
    },
    read: (digest, from = 0) => createReadStream(blob(digest), { start: from }),
    async begin(digest) {
      const path = join(dir, 'new', `${Date.now()}-${randomUUID()}`);
      const file = await open(path, 'wx', 0o600);
      const sum = createHash('sha256');
      let unseen = 0;
      const abandon = async (): Promise<void> => {
        await file.close().catch(() => undefined);
        rmSync(path, { force: true });
      };
      return {
        async write(chunk) {
          sum.update(chunk);
          await file.writeFile(chunk);
          unseen += chunk.length;
          if (unseen < Math.min(STEP_BYTES, mostBytes / STEPS)) return;
          unseen = 0;
          // A single registry, or many at once, could otherwise fill the disk.
          await roomFor(path, dir, mostBytes);
        },
        async finish() {
          if (`sha256:${sum.digest('hex')}` !== digest) {
            await abandon();
            return false;
          }
          await file.sync();
          await file.close();
          renameSync(path, blob(digest));
          makeRoom(dir, mostBytes);
          return true;
        },
        abandon,
      };
    },
    async learn(place, part) {
      noted();
      mkdirSync(placeDir(place), { recursive: true, mode: 0o700 });
      await writeJson(dir, join(placeDir(place), hexOf(part.digest)), part);
    },
    tag: (place, name) => readJson(tagFile(place, name)) as Tag | null,
    async setTag(place, name, tag) {
      noted();
      await writeJson(dir, tagFile(place, name), tag);
    },
    async alone(digest, work) {
      const path = join(dir, 'locks', hexOf(digest));
      for (;;) {
        using lock = lockOnce(path);
        if (lock !== null) return await work();
        await sleep(LOOK_MS);
      }
    },
  };
}

/** Removes the oldest records of places and tags, which costs one more request each. A registry can have any number of names. */
function forgetNotes(dir: string, most: number): void {
  const [known, tags] = [join(dir, 'known'), join(dir, 'tags')];
  const places = readdirSync(known).map((name) => join(known, name));
  const all = [...places.flatMap(filesIn), ...filesIn(tags)];
  const old = all.toSorted((a, b) => b.usedMs - a.usedMs).slice(most);
  for (const { path } of old) rmSync(path, { force: true });
  for (const place of places) removeIfEmpty(place);
}

function removeIfEmpty(dir: string): void {
  try {
    rmdirSync(dir);
  } catch (error) {
    if (!['ENOTEMPTY', 'ENOENT'].includes(errorCode(error) ?? '')) throw error;
  }
}

/** The lock file names a process; this set handles several callers within it. */
const HELD = new Set<string>();

function lockOnce(path: string): Disposable | null {
  if (HELD.has(path)) return null;
  const lock = tryLock(path);
  if (lock === null) return null;
  HELD.add(path);
  return {
    [Symbol.dispose]() {
      HELD.delete(path);
      lock[Symbol.dispose]();
    },
  };
}

/** If there is too little space for all writers, the latest one fails and the others wait for it; meanwhile none of them writes. */
async function roomFor(path: string, dir: string, mostBytes: number): Promise<void> {
  for (const end = Date.now() + ROOM_MS; !makeRoom(dir, mostBytes); await sleep(LOOK_MS)) {
    // Other files there are records, which are renamed at once.
    const coming = readdirSync(join(dir, 'new')).filter((name) => /^\d{13}-/.test(name));
    if (coming.toSorted().at(-1) === basename(path) || Date.now() > end) throw new Error('the image cache is full');
  }
}

/** Removes the least recently used parts, but none that is being read. False: incoming parts alone are too large. */
function makeRoom(dir: string, mostBytes: number): boolean {
  const coming = filesIn(join(dir, 'new'));
  const dead = coming.filter(({ usedMs }) => Date.now() - usedMs > ABANDONED_MS);
  for (const { path } of dead) rmSync(path, { force: true });
  const share = mostBytes / MOST_PARTS;
  const kept = filesIn(join(dir, 'blobs')).map((file) => ({ ...file, bytes: Math.max(file.bytes, share) }));
  const living = coming.filter((file) => !dead.includes(file));
  let total = [...living, ...kept].reduce((sum, { bytes }) => sum + bytes, 0);
  for (const { path, bytes } of kept.toSorted((a, b) => a.usedMs - b.usedMs)) {
    if (total <= mostBytes) break;
    rmSync(path, { force: true });
    total -= bytes;
  }
  return total <= mostBytes;
}

function filesIn(dir: string): { readonly path: string; readonly bytes: number; readonly usedMs: number }[] {
  return readdirSync(dir).flatMap((name) => {
    const stat = statSync(join(dir, name), { throwIfNoEntry: false });
    return stat === undefined ? [] : [{ path: join(dir, name), bytes: stat.size, usedMs: stat.mtimeMs }];
  });
}

function touch(path: string): void {
  try {
    const now = new Date();
    utimesSync(path, now, now);
  } catch (error) {
    if (errorCode(error) !== 'ENOENT') throw error;
  }
}

function hexOf(digest: string): string {
  return digest.slice('sha256:'.length);
}

function hash(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

function readJson(path: string): unknown {
  try {
    return JSON.parse(readFileSync(path, 'utf8'));
  } catch (error) {
    if (errorCode(error) === 'ENOENT' || error instanceof SyntaxError) return null;
    throw error;
  }
}

async function writeJson(dir: string, path: string, value: object): Promise<void> {
  const whole = join(dir, 'new', randomUUID());
  await writeFile(whole, JSON.stringify(value), { mode: 0o600 });
  renameSync(whole, path);
}
