// cli/goals-file.ts: the goals in a file: one per line, or per list item with its indented lines. Pure.
export interface GoalsFile {
  readonly goals: readonly string[];
  /** Lines that start no task, and why. Headings and empty lines separate goals and are not listed. */
  readonly leftOut: readonly { readonly line: number; readonly text: string; readonly why: string }[];
}

export function readGoalsFile(text: string): GoalsFile {
  const lines = text.split(/\r?\n/);
  const hasItems = lines.some((line) => ITEM.test(line));
  const goals: string[] = [];
  const leftOut: { line: number; text: string; why: string }[] = [];
  // Indented lines belong to the item above them; those of a done item are left out with it.
  let item: 'open' | 'done' | null = null;
  for (const [i, line] of lines.entries()) {
    const words = line.trim();
    if (words === '' || line.startsWith('#')) {
      if (words !== '') item = null;
      continue;
    }
    const [, mark, first] = ITEM.exec(line) ?? [];
    if (!hasItems) goals.push(words);
    else if (first !== undefined) {
      item = mark === undefined || mark === ' ' ? 'open' : 'done';
      if (item === 'open') goals.push(first);
      else leftOut.push({ line: i + 1, text: first, why: 'done' });
    } else if (item !== null && /^\s/.test(line)) {
      if (item === 'open') goals[goals.length - 1] += `\n${words}`;
    } else {
      item = null;
      leftOut.push({ line: i + 1, text: words, why: 'not a list item' });
    }
  }
  return { goals, leftOut };
}

const ITEM = /^(?:[-*+]|\d+[.)])\s+(?:\[([ xX])\]\s+)?(.*\S)\s*$/;
