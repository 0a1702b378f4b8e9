// git/repository.ts: the facts that ags knows about a user's repository; reading them runs no program of the repository.

export interface Repository {
  readonly root: string;
  /** The git directory of this work tree; differs from `commonDir` in a linked worktree. */
  readonly gitDir: string;
  readonly commonDir: string;
  readonly objectFormat: 'sha1' | 'sha256';
  /** "refs/heads/main", or null if HEAD is detached. */
  readonly headRef: string | null;
  readonly headCommit: string | null;
  readonly refs: readonly { readonly name: string; readonly oid: string }[];
  /** Settings of the user and the repository: lower-case keys, and the last value of each. */
  readonly settings: ReadonlyMap<string, string>;
}
