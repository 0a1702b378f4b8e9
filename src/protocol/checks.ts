// protocol/checks.ts: what checks.json of a task says: the last checks, or those that run now.
// All text in it but names and commands is what a sandbox printed, and hostile.

export type CheckState = 'waiting' | 'running' | 'passed' | 'failed' | 'ended';

export interface CheckRecord {
  readonly name: string;
  readonly run: string;
  readonly state: CheckState;
  readonly exitCode: number | null;
  readonly startedAtMs: number | null;
  readonly endedAtMs: number | null;
  /** Why it was ended, or did not run; null: it ended by itself. */
  readonly why: string | null;
  /** Of one that failed: the first line that tells of an error, or the last one. */
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
  /** The branch as it would be after the merge. They say something about exactly this tree. */
  readonly tree: string;
  readonly ref: string;
  /** The commit that the branch was at. */
  readonly from: string;
  /** What the agent had done by then. */
  readonly result: string;
  readonly files: number;
  /** Setup commands: none, as all tasks have them, or run again because what decides them was changed. */
  readonly setup: 'none' | 'shared' | 'private' | null;
  readonly checks: readonly CheckRecord[];
  /** Hosts that were asked for and refused. */
  readonly denied: readonly string[];
  readonly startedAtMs: number;
  readonly endedAtMs: number | null;
  readonly runner: { readonly pid: number; readonly startTicks: string };
  /** What they stand on, while they run: nobody removes it. */
  readonly layers: readonly string[];
}
