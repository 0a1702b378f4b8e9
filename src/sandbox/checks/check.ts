// sandbox/checks/check.ts: one check of `ags doctor`. A check is a value in a table; to add one, add a value.
// Invariant: every problem comes with the command that fixes it.

export type Finding =
  | { readonly status: 'ok'; readonly message: string }
  /** It works, but could be better. */
  | { readonly status: 'note'; readonly message: string; readonly fix: string }
  /** `ags exec` does not work until this is fixed. */
  | { readonly status: 'missing'; readonly message: string; readonly fix: string };

export interface Check<Facts> {
  readonly id: string;
  readonly group: string;
  /** null: the check does not apply here. */
  readonly run: (facts: Facts) => Finding | null | Promise<Finding | null>;
}

export const ok = (message: string): Finding => ({ status: 'ok', message });
export const note = (message: string, fix: string): Finding => ({ status: 'note', message, fix });
export const missing = (message: string, fix: string): Finding => ({ status: 'missing', message, fix });
