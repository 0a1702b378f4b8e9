// web/src/review/checks-pane.tsx: the result and output of each check, or how to configure checks.
import type { ReactNode } from 'react';
import type { ApiCheck, ApiChecks } from '../../../src/protocol/api/checks.ts';
import { Output } from '../task/output.tsx';
import { cleanLine } from '../text/clean.ts';
import { plural, took } from '../text/format.ts';
import { Copyable } from '../ui/copyable.tsx';
import { Dialog } from '../ui/dialog.tsx';
import { Elapsed } from '../ui/figures.tsx';

export function ChecksPane({
  open,
  onClose,
  checks,
  tree,
}: {
  open: boolean;
  onClose: () => void;
  checks: ApiChecks | undefined;
  /** The tree that the current selection would produce. */
  tree: string | null;
}): ReactNode {
  const last = checks?.last ?? null;
  return (
    <Dialog open={open} onClose={onClose} wide title="Checks" about={last === null ? undefined : aboutOf(last, tree)}>
      {last === null ? <p>No checks have run yet.</p> : null}
      {last?.reason == null ? null : <p className="mb-3 wrap-anywhere">{cleanLine(last.reason)}</p>}
      {last === null || last.denied.length === 0 ? null : (
        <p className="mb-3 wrap-anywhere">
          Blocked: {last.denied.map((host) => cleanLine(host)).join(', ')}. Checks can reach only hosts that the
          project’s rules allow.
        </p>
      )}
      <ol className="flex flex-col gap-4">
        {last?.checks.map((check, n) => (
          <li key={n}>
            <One check={check} />
          </li>
        ))}
      </ol>
      {checks !== undefined && checks.configured.length === 0 ? <HowTo suggested={checks.suggested} /> : null}
    </Dialog>
  );
}

function aboutOf(last: NonNullable<ApiChecks['last']>, tree: string | null): string {
  const what = `${plural(last.files, 'file')} onto ${cleanLine(last.branch, 60)} ${last.from.slice(0, 7)}`;
  return last.tree === tree ? `For the current selection: ${what}.` : `For another selection: ${what}.`;
}

const WORDS: Readonly<Record<ApiCheck['state'], { word: string; look: string }>> = {
  waiting: { word: 'Waiting', look: 'text-muted' },
  running: { word: 'Running', look: 'text-muted' },
  passed: { word: 'Passed', look: 'text-ok' },
  failed: { word: 'Failed', look: 'text-bad' },
  ended: { word: 'Not finished', look: 'text-muted' },
};

function One({ check }: { check: ApiCheck }): ReactNode {
  const { word, look } = WORDS[check.state];
  const name = cleanLine(check.name, 120);
  return (
    <>
      <h3 className="flex flex-wrap items-baseline gap-x-3">
        <span className={`font-medium ${look}`}>{word}</span>
        <span className="min-w-0 grow font-mono text-sm wrap-anywhere">{name}</span>
        <span className="text-sm text-muted">{timeOf(check)}</span>
      </h3>
      {check.why === null ? null : <p className="text-sm wrap-anywhere">{cleanLine(check.why)}</p>}
      {check.cut ? <p className="text-xs text-muted">Only the end of the output is shown.</p> : null}
      <Output text={check.output} few={12} label={`Output of ${name}`} />
    </>
  );
}

function timeOf({ startedAtMs, endedAtMs, exitCode }: ApiCheck): ReactNode {
  if (startedAtMs === null) return null;
  if (endedAtMs === null) return <Elapsed from={startedAtMs} />;
  return `${exitCode === null ? '' : `exit ${exitCode}, `}${took(endedAtMs - startedAtMs)}`;
}

function HowTo({ suggested }: { suggested: readonly string[] }): ReactNode {
  const commands = suggested.length === 0 ? ['make test'] : suggested;
  return (
    <div className="mt-4">
      <p className="mb-1">To configure checks, add this to ags.yaml:</p>
      <Copyable text={`checks: [${commands.map((command) => JSON.stringify(cleanLine(command))).join(', ')}]`} />
    </div>
  );
}
