// test/web/review-place.ts: tasks of the demo agent, and their reviews in a browser.
import type { Locator, Page } from 'playwright-core';
import { createPlace, type Place, type Window } from './browser.ts';

/** Runs all tasks in parallel. `tasks` maps names to goals of the demo agent. */
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

export const bar = (page: Page): Locator => page.getByRole('region', { name: 'Merge' });
export const diff = (page: Page): Locator => page.getByRole('region', { name: 'Changes' });
export const file = (page: Page, name: string): Locator => page.getByRole('treeitem', { name });
export const clean = (page: Page): Promise<void> =>
  bar(page)
    .getByText(/Merges cleanly onto/)
    .waitFor();
