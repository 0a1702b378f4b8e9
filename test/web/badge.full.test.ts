// test/web/badge.full.test.ts: the page shows the last attack test of a task's sandbox configuration, and of no other configuration.
// test/attacks/doctor-attack.full.test.ts shows that `ags doctor --attack` stores its result under the configuration's key.
import { chownSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { keepAttacked } from '../../src/store/attacked.ts';
import { taskPaths } from '../../src/store/layout.ts';
import { giveTo } from '../harness.ts';
import { createPlace, seen, type Place } from './browser.ts';

let place: Place;
beforeAll(async () => {
  place = await createPlace();
});
afterAll(() => place[Symbol.asyncDispose]());

/** Creates a finished task and returns its id. */
async function makeTask(name: string): Promise<string> {
  const run = await place.machine.ags(['exec', '--name', name, '--review', 'later', '--', 'touch', `${name}.txt`]);
  expect(run.code, run.stderr).toBe(0);
  return place.machine.tasks().find((id) => id.startsWith(`${name}-`)) ?? '';
}

function keyOf(task: string): string {
  const { run } = taskPaths(place.machine.stateDir, task);
  return (JSON.parse(readFileSync(run, 'utf8')) as { sandboxKey: string }).sandboxKey;
}

/** Stores a result as `ags doctor --attack` does for this task's sandbox configuration. */
function keep(task: string, held: number, of: number): void {
  keepAttacked(place.machine.stateDir, keyOf(task), { held, of, atMs: Date.now() });
  chownSync(join(place.machine.stateDir, 'attacked.json'), place.machine.uid, place.machine.uid);
}

const badge = (page: Page): Promise<string[]> => page.getByText(/^Attack test \d/).allTextContents();

test('a task shows the attack test of its sandbox configuration once there is one', async () => {
  const task = await makeTask('first');
  await using window = await place.open(place.task(task));
  const { page, complaints } = window;
  await seen(page, 'first.txt');
  expect(await badge(page)).toEqual([]);
  keep(task, 201, 201);
  await page.reload();
  await page.getByTitle('tried 201 attacks on a sandbox like this one; 201 were stopped or limited').waitFor();
  expect(await badge(page)).toEqual([expect.stringMatching(/^Attack test 201\/201 · /)]);
  // A single successful attack turns the badge red.
  keep(task, 200, 201);
  await page.reload();
  await page
    .getByTitle('tried 201 attacks on a sandbox like this one; 200 were stopped or limited')
    .locator('svg.text-bad')
    .waitFor();
  expect(complaints).toEqual([]);
});

test('a task with another sandbox configuration does not show the result', async () => {
  const before = await makeTask('before');
  keep(before, 201, 201);
  const dir = join(place.machine.home, '.config/ags');
  mkdirSync(dir, { recursive: true });
  writeFileSync(join(dir, 'config.yaml'), 'reveal: [.env]\n');
  giveTo(dir, place.machine.uid);
  const after = await makeTask('after');
  expect(keyOf(after)).not.toBe(keyOf(before));
  await using window = await place.open(place.task(after));
  const { page, complaints } = window;
  await seen(page, 'after.txt');
  expect(await badge(page)).toEqual([]);
  await page.goto(new URL(place.task(before), page.url()).href);
  await page.getByTitle('201 were stopped or limited').waitFor();
  expect(complaints).toEqual([]);
});
