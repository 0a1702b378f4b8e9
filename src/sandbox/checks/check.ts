// sandbox/checks/check.ts: one question of `ags doctor`. A check is a value in a table; to ask more, add a value.
// Invariant: whatever is not in order comes with the command that puts it right.

export type Finding =
  | { readonly status: 'ok'; readonly message: string }
  /** Works, but could be better. */
  | { readonly status: 'note'; readonly message: string; readonly fix: string }
  /** `ags exec` does not work until this is put right. */
  | { readonly status: 'missing'; readonly message: string; readonly fix: string };

export interface Check<Facts> {
  readonly id: string;
  readonly group: string;
  /** null: the question does not arise here. */
  readonly run: (facts: Facts) => Finding | null | Promise<Finding | null>;
}

export const ok = (message: string): Finding => ({ status: 'ok', message });
export const note = (message: string, fix: string): Finding => ({ status: 'note', message, fix });
export const missing = (message: string, fix: string): Finding => ({ status: 'missing', message, fix });
