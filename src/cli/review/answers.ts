// cli/review/answers.ts: what a user decides in a review on the terminal.
import type { Paint } from '../terminal/colour.ts';
import type { Context } from '../verb.ts';

/** "part": these hunks of the file. `settled`: the others are thrown away; otherwise the file stays for later. */
export type Decision =
  | { readonly kind: 'take' | 'drop' | 'later' }
  | { readonly kind: 'edited'; readonly text: Buffer }
  | { readonly kind: 'part'; readonly hunks: readonly number[]; readonly settled: boolean };

export interface Answers {
  /** One for each change, in order. Changes after the one at which the user left have none. */
  readonly decisions: readonly (Decision | undefined)[];
  /** The user left the review early. */
  readonly left: boolean;
}

/** "merge": the answers choose what a commit takes; nothing is thrown away or edited. */
export type Purpose = 'review' | 'merge';

export type Key = () => Promise<string>;

export interface Asking {
  readonly ctx: Context;
  readonly paint: Paint;
  readonly key: Key;
  readonly purpose: Purpose;
}
