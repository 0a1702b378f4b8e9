// web/src/tasks/goals.ts: splits text into goals, one per line.

/** Removes the markers of Markdown lists. */
export function goalsOf(text: string): string[] {
  return text
    .split('\n')
    .map((line) => line.trim().replace(/^(?:[-*+]|\d{1,3}[.)])\s+(?:\[[ xX]\]\s+)?/, ''))
    .filter((line) => line !== '');
}

/** Files that several goals mention. Such tasks may conflict, so the page says so but still starts them. */
export function sharedFiles(goals: readonly string[]): string[] {
  const seen = new Map<string, number>();
  for (const goal of goals)
    for (const path of new Set(goal.match(/[\w./-]+\.[a-z]{1,5}\b/gi) ?? [])) seen.set(path, (seen.get(path) ?? 0) + 1);
  return [...seen].filter(([, count]) => count > 1).map(([path]) => path);
}
