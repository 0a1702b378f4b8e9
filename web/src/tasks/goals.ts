// web/src/tasks/goals.ts: from what was typed to goals: one line each, as plain lines or as a Markdown list.

/** The goals, each on its line; list marks are left out. */
export function goalsOf(text: string): string[] {
  return text
    .split('\n')
    .map((line) => line.trim().replace(/^(?:[-*+]|\d{1,3}[.)])\s+(?:\[[ xX]\]\s+)?/, ''))
    .filter((line) => line !== '');
}

/** Pairs of goals that name the same file: no reason not to start them, but one to know. */
export function sharedFiles(goals: readonly string[]): string[] {
  const seen = new Map<string, number>();
  for (const goal of goals)
    for (const path of new Set(goal.match(/[\w./-]+\.[a-z]{1,5}\b/gi) ?? [])) seen.set(path, (seen.get(path) ?? 0) + 1);
  return [...seen].filter(([, count]) => count > 1).map(([path]) => path);
}
