// cli/review/run-checks.ts: runs checks in the foreground: live output, results, and Ctrl-C.
import type { CheckRecord, ChecksFile } from '../../protocol/checks.ts';
import { visible } from '../../lib/sanitize.ts';
import { formatDuration } from '../../lib/units.ts';
import { checkLogPath } from '../../store/checks.ts';
import type { StoredTask } from '../../store/tasks.ts';
import { missingSetup } from '../../merge/check-suggestions.ts';
import { openChecks, type ChecksRequest } from '../../merge/checks.ts';
import { createPaint } from '../terminal/colour.ts';
import { count, shellLine, table } from '../terminal/format.ts';
import { LOOKING, meanwhile } from '../terminal/meanwhile.ts';
import type { Context } from '../verb.ts';

export async function runChecksHere(
  ctx: Context,
  stored: StoredTask,
  request: ChecksRequest,
  options: { readonly quiet: boolean },
): Promise<ChecksFile> {
  const stop = new AbortController();
  const abort = (): void => stop.abort();
  for (const name of SIGNALS) process.on(name, abort);
  try {
    const checks = await meanwhile(ctx, LOOKING, openChecks(ctx.host, stored, request));
    const say = (text: string): void => void (options.quiet ? undefined : ctx.stderr.write(`${text}\n`));
    say(
      `ags: ${stored.task.name}: ${count(checks.merged.take.length, 'file')} onto ${visible(checks.merged.ref.replace('refs/heads/', ''))}, tree ${checks.merged.tree.slice(0, 10)}`,
    );
    let told = -1;
    return await checks.run(
      {
        step: say,
        changed(file) {
          const n = file.checks.findIndex(({ state }) => state === 'running');
          if (n < 0 || n === told) return;
          told = n;
          say(`ags: check ${n + 1} of ${file.checks.length}: ${visible(file.checks[n]?.name ?? '')}`);
        },
        printed: (_n, text) => void (options.quiet ? undefined : ctx.stdout.write(text)),
      },
      stop.signal,
    );
  } finally {
    for (const name of SIGNALS) process.off(name, abort);
  }
}

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** `merge` is the command that merges exactly the checked tree; null if the merge follows by itself. */
export async function tellChecks(
  ctx: Context,
  stored: StoredTask,
  file: ChecksFile,
  merge: readonly string[] | null,
): Promise<void> {
  const paint = createPaint(ctx.colour);
  const rows = file.checks.map((one) => [
    { text: WORDS[one.state], paint: (text: string) => paint(one.state === 'passed' ? 'green' : 'red', text) },
    one.name,
    howItEnded(one),
    timeOf(one),
  ]);
  ctx.stdout.write(`\n${table(rows)}`);
  const say = (text: string): void => void ctx.stderr.write(`${text}\n`);
  if (file.denied.length > 0) say(`ags: refused: ${file.denied.map(visible).join(', ')} (see: ags help network)`);
  const failed = file.checks.flatMap((one, n) => (one.state === 'failed' ? [n] : []));
  // A check that never started has no output.
  const printed = failed.find((n) => file.checks[n]?.startedAtMs !== null);
  switch (file.state) {
    case 'passed':
      return say(
        `ags: ${count(file.checks.length, 'check')} passed for exactly this tree.${merge === null ? '' : ` Merge it: ${shellLine(merge)}`}`,
      );
    case 'failed': {
      say(
        `ags: ${failed.length} of ${count(file.checks.length, 'check')} failed. ${printed === undefined ? '' : `Output: ${checkLogPath(stored.paths, printed)}`}`.trimEnd(),
      );
      const why = await missingSetup(stored, file);
      return why === null ? undefined : say(`ags: ${why}`);
    }
    case 'ended':
    case 'running':
      return say(`ags: the checks were stopped. ${file.reason ?? ''}`.trimEnd());
  }
}

const WORDS: Readonly<Record<CheckRecord['state'], string>> = {
  waiting: 'not run',
  running: 'running',
  passed: 'passed',
  failed: 'failed',
  ended: 'ended',
};

function howItEnded({ exitCode, why, state }: CheckRecord): string {
  if (why !== null) return why;
  return exitCode === null || state === 'ended' ? '' : `exit ${exitCode}`;
}

function timeOf({ startedAtMs, endedAtMs }: CheckRecord): string {
  if (startedAtMs === null || endedAtMs === null) return '';
  const ms = endedAtMs - startedAtMs;
  return ms < 10_000 ? `${(ms / 1000).toFixed(1)}s` : formatDuration(Math.round(ms / 1000));
}
