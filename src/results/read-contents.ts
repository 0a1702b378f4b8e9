// results/read-contents.ts: reads the bytes of many files in staging, to write them.
import { readBlob, readBlobs } from '../git/staging/staging.ts';

/** The bytes, or a function that loads them. */
export type ContentOf = (oid: string) => Buffer | (() => Promise<Buffer>);

const SMALL_BYTES = 1024 * 1024;
const BATCH = 200;
const KEPT_BYTES = 128 * 1024 * 1024;

/** Loads small files by the hundred, because one process per file is too slow. Large files, and those beyond the limit, load one by one later. */
export async function readContents(
  staging: string,
  files: readonly { readonly oid: string; readonly bytes: number }[],
): Promise<ContentOf> {
  const contents = new Map<string, Buffer>();
  let kept = 0;
  const small = files
    .filter((file) => file.bytes <= SMALL_BYTES)
    .filter((file) => (kept += file.bytes) <= KEPT_BYTES)
    .map((file) => file.oid);
  for (let i = 0; i < small.length; i += BATCH) {
    const read = await readBlobs(staging, small.slice(i, i + BATCH), SMALL_BYTES);
    for (const [oid, bytes] of read) if (bytes !== null) contents.set(oid, bytes);
  }
  return (oid) => contents.get(oid) ?? (() => readBlob(staging, oid));
}
