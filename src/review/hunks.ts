// review/hunks.ts: the parts of a difference, and a file with some of them alone. Pure; works on bytes, as characters of one byte each.
// Invariant: with all parts it is the new file, with none the old one, byte for byte.

export interface Hunk {
  /** From 0, in the order of the file. */
  readonly n: number;
  /** "@@ -1,3 +1,4 @@ function f() {". */
  readonly header: string;
  /** The line of the old file that it begins at, from 0, and how many of its lines it speaks of. */
  readonly at: number;
  readonly length: number;
  /** Each with its sign, and its end if it has one. */
  readonly lines: readonly string[];
}

/** `diff` from its first "@@" on, as latin1. */
export function readHunks(diff: string): Hunk[] {
  const hunks: { n: number; header: string; at: number; length: number; lines: string[] }[] = [];
  for (const line of diff.split('\n').slice(0, -1)) {
    const head = /^@@ -(\d+)(?:,(\d+))? \+\d+(?:,\d+)? @@/.exec(line);
    const last = hunks.at(-1);
    if (head !== null) {
      const length = head[2] === undefined ? 1 : Number(head[2]);
      // "-0,0" and "-5,0" name the line before which nothing stands.
      const at = Number(head[1]) - (length === 0 ? 0 : 1);
      hunks.push({ n: hunks.length, header: line, at, length, lines: [] });
    } else if (line.startsWith('\\')) {
      // "\ No newline at end of file": of the line before it.
      const before = last?.lines.pop();
      if (before !== undefined) last?.lines.push(before.slice(0, -1));
    } else last?.lines.push(`${line}\n`);
  }
  return hunks;
}

export function withHunks(before: string, hunks: readonly Hunk[], chosen: ReadonlySet<number>): string {
  const old = before.match(/[^\n]*\n|[^\n]+$/g) ?? [];
  const out: string[] = [];
  let at = 0;
  for (const hunk of hunks) {
    out.push(...old.slice(at, hunk.at));
    const dropped = chosen.has(hunk.n) ? '-' : '+';
    out.push(...hunk.lines.filter((line) => !line.startsWith(dropped)).map((line) => line.slice(1)));
    at = hunk.at + hunk.length;
  }
  out.push(...old.slice(at));
  return out.join('');
}
