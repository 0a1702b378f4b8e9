// protocol/changes.ts: the changes of a run, path by path, each with its lane.
// Paths are relative to the project, with "/" between names. A path is bytes on Linux; one that is not UTF-8 is refused.

export type ChangeKind = 'new' | 'modified' | 'deleted' | 'renamed' | 'mode' | 'symlink' | 'type';

/** Where a file acts once it is accepted: nowhere by itself, in CI, or on the user's machine. */
export type Lane = 'inert' | 'ci' | 'host';

export interface FileState {
  /** Git mode: 100644, 100755 or 120000. */
  readonly mode: '100644' | '100755' | '120000';
  /** Git object id of the raw bytes (of the target, for a symlink). */
  readonly oid: string;
  readonly bytes: number;
}

export interface Change {
  readonly path: string;
  /** The path before a rename. */
  readonly from?: string;
  readonly kind: ChangeKind;
  readonly before: FileState | null;
  readonly after: FileState | null;
  readonly lane: Lane;
  /** Facts for the reviewer, one sentence each: the reason for the lane, and anything unusual. */
  readonly reasons: readonly string[];
  /** The file also changed on the host since the sandbox started. */
  readonly conflict: 'none' | 'merges' | 'conflicts';
  /** Ignored by the project's git rules. */
  readonly ignored: boolean;
}

/** An entry of the upper that can never be accepted: a device, a fifo, a path inside .git. */
export interface Refusal {
  readonly path: string;
  readonly reason: string;
}

export interface ChangeSet {
  /** The ID of the captured tree; binds a review to exactly this content. */
  readonly id: string;
  readonly changes: readonly Change[];
  readonly refused: readonly Refusal[];
  readonly ignored: { readonly files: number; readonly bytes: number; readonly reviewed: boolean };
}
