// review/added-lines.ts: finds the lines that a file did not have before, with their numbers.
// A line that appears once more than before counts as added, so a copy of an existing line is found too.

export interface AddedLine {
  readonly number: number;
  readonly text: string;
}

/** A text file with its former text. */
export interface Inspected {
  readonly before: string | null;
  readonly after: string;
  readonly added: readonly AddedLine[];
}

export function addedLines(before: string | null, after: string | null): AddedLine[] {
  if (after === null || after === before) return [];
  const known = new Map<string, number>();
  for (const line of before === null ? [] : before.split('\n')) known.set(line, (known.get(line) ?? 0) + 1);
  const added: AddedLine[] = [];
  for (const [at, text] of after.split('\n').entries()) {
    const left = known.get(text) ?? 0;
    if (left > 0) known.set(text, left - 1);
    else added.push({ number: at + 1, text });
  }
  return added;
}
