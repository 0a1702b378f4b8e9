// test/review/hunks.test.ts: applies selected hunks: all give the new file, none the old file, and every selection gives what git gives.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { createStaging, diffBytes, storeBlob } from '../../src/git/staging/staging.ts';
import { readHunks, withHunks, type Hunk } from '../../src/review/hunks.ts';

const place = mkdtempSync(join(tmpdir(), 'ags-hunks-'));
const staging = join(place, 'staging.git');
createStaging(staging, 'sha1');
afterAll(() => rmSync(place, { recursive: true, force: true }));

async function hunksOf(before: Buffer, after: Buffer): Promise<Hunk[]> {
  const diff = await diffBytes(staging, await storeBlob(staging, before), await storeBlob(staging, after));
  return readHunks(diff.toString('latin1'));
}

/** Applies the selected hunks with `git apply`. */
function byGit(before: string, hunks: readonly Hunk[]): string {
  const file = join(place, 'file');
  writeFileSync(file, before, 'latin1');
  const lines = hunks.flatMap(({ header, lines: all }) => [
    `${header}\n`,
    ...all.map((line) => (line.endsWith('\n') ? line : `${line}\n\\ No newline at end of file\n`)),
  ]);
  const patch = `--- a/file\n+++ b/file\n${lines.join('')}`;
  execFileSync('git', ['apply', '--unidiff-zero', '--whitespace=nowarn', '-'], {
    cwd: place,
    env: { ...process.env, GIT_CEILING_DIRECTORIES: tmpdir() },
    input: Buffer.from(patch, 'latin1'),
  });
  return execFileSync('cat', [file], { encoding: 'latin1' });
}

test.each([
  ['', 'a\nb\n'],
  ['a\nb\n', ''],
  ['a', 'a\n'],
  ['a\n', 'a'],
  ['a\nb', 'a\nc'],
  ['\r\n\r\n', '\r\n'],
  ['\\ No newline\n', '@@ -1 +1 @@\n'],
  ['-- x\n', '++ y\n'],
])('%j to %j: all hunks give the new text, none the old text', async (before, after) => {
  const hunks = await hunksOf(Buffer.from(before), Buffer.from(after));
  expect(withHunks(before, hunks, new Set(hunks.map(({ n }) => n)))).toBe(after);
  expect(withHunks(before, hunks, new Set())).toBe(before);
});

test('any selection of hunks of any text gives the same as git', async () => {
  let seed = 42;
  const random = (most: number): number => {
    seed = (Math.imul(seed, 1_103_515_245) + 12_345) >>> 1;
    return seed % most;
  };
  for (let round = 0; round < 25; round++) {
    const lines = Array.from({ length: 60 + random(60) }, (_, i) => `${i} \xff${random(5)}`);
    const changed = lines.flatMap((line) => {
      const what = random(14);
      return what === 0 ? [] : what === 1 ? [line, `new ${random(9)}`] : what === 2 ? [`other ${random(9)}`] : [line];
    });
    const end = (): string => (random(3) === 0 ? '' : '\n');
    const [before, after] = [lines.join('\n') + end(), changed.join('\n') + end()];
    const hunks = await hunksOf(Buffer.from(before, 'latin1'), Buffer.from(after, 'latin1'));
    const chosen = hunks.filter(() => random(2) === 0);
    expect(withHunks(before, hunks, new Set(hunks.map(({ n }) => n)))).toBe(after);
    if (chosen.length > 0)
      expect(withHunks(before, hunks, new Set(chosen.map(({ n }) => n)))).toBe(byGit(before, chosen));
  }
});
