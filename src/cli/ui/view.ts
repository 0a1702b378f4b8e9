// cli/ui/view.ts: what every view of `ags ui` does: it draws into a number of rows and takes keys. Views change nothing themselves.
import type { Line } from './cells.ts';
import type { Key } from './keys.ts';

export interface Size {
  readonly columns: number;
  readonly rows: number;
}

export interface View {
  /** The task that it shows, if it is one task. */
  readonly task?: string;
  /** The first row of the screen. */
  title(size: Size): Line;
  /** The rows between title and footer; fewer are filled up. */
  body(size: Size): readonly Line[];
  /** Keys that work here, the most useful first. */
  hints(): readonly Hint[];
  /** Returns false for a key that it does not know. */
  key(key: Key): boolean;
  /** The place of the cursor within the body, if something is typed. */
  cursor?(size: Size): { x: number; y: number } | null;
}

/** A key and what it does: ["d", "diff"]. */
export type Hint = readonly [string, string];
