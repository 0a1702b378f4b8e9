// review/hunks.ts: splits a diff into hunks, and builds a file from some of them. Pure; texts are latin1, one character per byte.
// Invariant: all hunks give the new file, and none give the old file, byte for byte.

export interface Hunk {
  /** From 0, in the order of the file. */
  readonly n: number;
  /** "@@ -1,3 +1,4 @@ function f() {". */
  readonly header: string;
  /** The first line of the hunk in the old file, from 0, and how many old lines it covers. */
  readonly at: number;
  readonly length: number;
  /** Each line with its sign, and with its line end if it has one. */
  readonly lines: readonly string[];
}

/** `diff` starts at its first "@@" and is latin1. */
export function readHunks(diff: string): Hunk[] {
  const hunks: { n: number; header: string; at: number; length: number; lines: string[] }[] = [];
  for (const line of diff.split('\n').slice(0, -1)) {
    const head = /^@@ -(\d+)(?:,(\d+))? \+\d+(?:,\d+)? @@/.exec(line);
    const last = hunks.at(-1);
    if (head !== null) {
      const length = head[2] === undefined ? 1 : Number(head[2]);
      // With length 0, as in "-5,0", the number is that of the line before the hunk.
      const at = Number(head[1]) - (length === 0 ? 0 : 1);
      hunks.push({ n: hunks.length, header: line, at, length, lines: [] });
    } else if (line.startsWith('\\')) {
      // "\ No newline at end of file" refers to the line before it.
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
