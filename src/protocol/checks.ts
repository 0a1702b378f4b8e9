// protocol/checks.ts: checks.json of a task: its last checks, or those that run now.
// All text in it except names and commands is output of a sandbox, and hostile.

export type CheckState = 'waiting' | 'running' | 'passed' | 'failed' | 'ended';

export interface CheckRecord {
  readonly name: string;
  readonly run: string;
  readonly state: CheckState;
  readonly exitCode: number | null;
  readonly startedAtMs: number | null;
  readonly endedAtMs: number | null;
  /** Why it was stopped or did not run; null: it ended by itself. */
  readonly why: string | null;
  /** For a failed check: the first line that looks like an error, or the last line. */
  readonly line: string | null;
  /** The last lines it printed. */
  readonly tail: readonly string[];
}

export interface ChecksFile {
  readonly version: 1;
  /** "ended": stopped, or the process that ran them is dead. */
  readonly state: 'running' | 'passed' | 'failed' | 'ended';
  /** Why they ended without a result, in words. */
  readonly reason: string | null;
  /** The tree of the branch after the merge. The result holds for exactly this tree. */
  readonly tree: string;
  readonly ref: string;
  /** The commit that the branch pointed to. */
  readonly from: string;
  /** The agent's commit at that time. */
  readonly result: string;
  readonly files: number;
  /** Setup: none, the shared layer, or a private run because its inputs changed. */
  readonly setup: 'none' | 'shared' | 'private' | null;
  readonly checks: readonly CheckRecord[];
  /** Hosts that the checks were refused. */
  readonly denied: readonly string[];
  readonly startedAtMs: number;
  readonly endedAtMs: number | null;
  readonly runner: { readonly pid: number; readonly startTicks: string };
  /** Layers in use while the checks run; cleanup must keep them. */
  readonly layers: readonly string[];
}
