// test/web/review-place.ts: a place with tasks that the demo agent has worked on, and their reviews in a browser.
import type { Page } from 'playwright-core';
import { createPlace, type Place, type Window } from './browser.ts';

/** All of them at once: by name, what the demo agent is to do. */
export async function createReviews(
  files: Record<string, string>,
  tasks: Readonly<Record<string, string>>,
): Promise<Place> {
  const place = await createPlace(files);
  await Promise.all(Object.entries(tasks).map(([name, goal]) => place.machine.runDemo(name, goal)));
  return place;
}

export const openReview = (place: Place, task: string, theme: 'light' | 'dark' = 'light'): Promise<Window> =>
  place.open(`${place.task(task)}/changes`, { colorScheme: theme });

/** For a person to look at, in the middle of a test: only where a directory is named. */
export async function picture(page: Page, name: string): Promise<void> {
  const dir = process.env['AGS_PICTURES'];
  if (dir !== undefined) await page.screenshot({ path: `${dir}/${name}.png` });
}
