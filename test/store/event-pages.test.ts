// test/store/event-pages.test.ts: pages of a log by event number for any line lengths, and new events since the last look.
import { appendFileSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { createEventTail, readEventPage } from '../../src/store/event-pages.ts';
import { openEvents } from '../../src/store/events.ts';

const place = mkdtempSync(join(tmpdir(), 'ags-pages-'));
afterAll(() => rmSync(place, { recursive: true, force: true }));
const upTo = (from: number, to: number): number[] => Array.from({ length: to - from + 1 }, (_, i) => from + i);

test('every page has the requested events, for lines of all sizes', () => {
  const file = join(place, 'sizes.jsonl');
  using log = openEvents(file, 'task', () => new Date(0));
  for (let i = 1; i <= 3000; i++)
    log.append({ type: 'agent.said', text: 'ü'.repeat(i % 500 === 0 ? 150_000 : (i * 7919) % 700) });
  for (const after of [0, 1, 2, 499, 500, 501, 1500, 2998, 2999, 3000, 5000]) {
    const page = readEventPage(file, { after, limit: 20 });
    expect(page.events.map(({ seq }) => seq)).toEqual(upTo(after + 1, Math.min(3000, after + 20)));
    expect([page.first, page.last]).toEqual([1, 3000]);
  }
  for (const before of [1, 2, 15, 1000, 3000, 3001])
    expect(readEventPage(file, { before, limit: 20 }).events.map(({ seq }) => seq)).toEqual(
      upTo(Math.max(1, before - 20), before - 1),
    );
  expect(readEventPage(file, { limit: 5 }).events.map(({ seq }) => seq)).toEqual(upTo(2996, 3000));
  expect(readEventPage(join(place, 'none'), { limit: 5 })).toEqual({ events: [], first: 0, last: 0 });
  // About that many bytes, but at least one event.
  expect(readEventPage(file, { after: 499, limit: 1000, maxBytes: 1 }).events).toHaveLength(1);
});

test('a tail reports each event once, waits for unfinished lines, and notices a replaced log', () => {
  const file = join(place, 'tail.jsonl');
  const seen: (number | string)[] = [];
  const tail = createEventTail(file, 2 ** 20, {
    event: ({ seq }) => void seen.push(seq),
    replaced: () => void seen.push('replaced'),
  });
  tail.readOn();
  const line = (seq: number): string => `{"seq":${seq},"at":"","task":"t","type":"x","prev":""}\n`;
  writeFileSync(file, line(1) + line(2).slice(0, 10));
  tail.readOn();
  expect(seen).toEqual([1]);
  appendFileSync(file, line(2).slice(10) + line(3));
  tail.readOn();
  tail.readOn();
  expect([seen, tail.seq]).toEqual([[1, 2, 3], 3]);
  renameSync(file, `${file}.old`);
  tail.readOn();
  writeFileSync(file, line(1));
  tail.readOn();
  expect(seen).toEqual([1, 2, 3, 'replaced', 1]);
});

test('the first look at a long log reports its end and the important events, and later looks report everything', () => {
  const file = join(place, 'long.jsonl');
  using log = openEvents(file, 'task', () => new Date(0));
  for (let i = 1; i <= 1000; i++)
    log.append(
      i === 10
        ? { type: 'network.denied', host: 'bad.test', port: 443, reason: '' }
        : { type: 'agent.said', text: 'x'.repeat(800) },
    );
  const seen: number[] = [];
  const tail = createEventTail(file, 2 ** 20, {
    event: ({ seq }) => void seen.push(seq),
    replaced: () => expect.unreachable(),
    matters: (line) => line.includes('"type":"network.denied"'),
  });
  tail.readOn();
  const [matters, ...end] = seen;
  expect([matters, tail.seq]).toEqual([10, 1000]);
  expect(end).toEqual(upTo(end[0] ?? 0, 1000));
  expect(end.length).toBeGreaterThan(50);
  expect(end.length).toBeLessThan(100);
  // A line longer than the buffer still counts as the end.
  for (let i = 1; i <= 3; i++) log.append({ type: 'agent.said', text: 'y'.repeat(100_000) });
  tail.readOn();
  expect(seen.slice(-4)).toEqual([1000, 1001, 1002, 1003]);
});
