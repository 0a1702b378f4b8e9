// config/file/suggest.ts: "did you mean ...?" for an unknown word.

/** The nearest known word, if it is near enough. */
export function suggest(word: string, known: readonly string[]): string | undefined {
  const same = known.find((candidate) => plain(candidate) === plain(word));
  if (same !== undefined || word.length > 64) return same;
  const reach = Math.max(1, Math.floor(word.length / 3));
  const ranked = known
    .map((candidate) => ({ candidate, steps: distance(plain(word), plain(candidate)) }))
    .filter(({ steps }) => steps <= reach)
    .toSorted((a, b) => a.steps - b.steps);
  return ranked[0]?.candidate;
}

function plain(text: string): string {
  return text.toLowerCase().replace(/[-_\s]/g, '');
}

/** Edit distance: letters to add, drop, change or swap with their neighbour. */
function distance(a: string, b: string): number {
  const rows = Array.from({ length: a.length + 1 }, (_, i) => [i, ...Array<number>(b.length).fill(0)]);
  const at = (i: number, j: number): number => rows[i]?.[j] ?? Infinity;
  for (let i = 0; i <= a.length; i++) {
    for (let j = 0; j <= b.length; j++) {
      if (i === 0 || j === 0) rows[i]![j] = i + j;
      else {
        const change = at(i - 1, j - 1) + (a[i - 1] === b[j - 1] ? 0 : 1);
        const swapped =
          i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1] ? at(i - 2, j - 2) + 1 : Infinity;
        rows[i]![j] = Math.min(at(i - 1, j) + 1, at(i, j - 1) + 1, change, swapped);
      }
    }
  }
  return at(a.length, b.length);
}
