// test/lib/read-at-ease.test.ts: output of a sandbox never blocks the event loop.
import { PassThrough, Readable } from 'node:stream';
import { expect, test } from 'vitest';
import { readAtEase } from '../../src/lib/stream/read-at-ease.ts';

const busy = (ms: number): void => {
  for (const end = performance.now() + ms; performance.now() < end;);
};

test('timers fire while thousands of buffered lines are read', async () => {
  let ticks = 0;
  const timer = setInterval(() => ticks++, 5);
  let pieces = 0;
  await readAtEase(
    Readable.from([Buffer.alloc(16_384, '\n')]),
    () => undefined,
    () => {
      pieces++;
      busy(2);
    },
  );
  clearInterval(timer);
  expect(pieces).toBe(256);
  expect(ticks).toBeGreaterThan(20);
});

test('every byte arrives in order, whole and in pieces', async () => {
  const chunks = ['one\ntwo\n', 'x\n'.repeat(300), 'no end', '', ' of it'].map((text) => Buffer.from(text));
  const [whole, pieces]: [Buffer[], Buffer[]] = [[], []];
  await readAtEase(
    Readable.from(chunks.filter(({ length }) => length > 0)),
    (chunk) => void whole.push(chunk),
    (piece) => void pieces.push(piece),
  );
  const all = Buffer.concat(chunks).toString();
  expect([Buffer.concat(whole).toString(), Buffer.concat(pieces).toString()]).toEqual([all, all]);
});

test('a stream that is closed early ends', async () => {
  const stream = new PassThrough();
  const seen: string[] = [];
  stream.write('begun\n');
  const read = readAtEase(
    stream,
    () => undefined,
    (piece) => {
      seen.push(piece.toString());
      stream.destroy();
    },
  );
  await expect(read).resolves.toBeUndefined();
  expect(seen).toEqual(['begun\n']);
});
