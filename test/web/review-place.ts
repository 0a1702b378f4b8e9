// test/web/review-place.ts: tasks of the demo agent, and their reviews in a browser.
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
