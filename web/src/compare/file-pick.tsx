// web/src/compare/file-pick.tsx: every file that an attempt changed, and the choice which version to merge.
import { TriangleAlert } from 'lucide-react';
import type { ReactNode } from 'react';
import type { ApiFile } from '../../../src/protocol/api/review.ts';
import { canRun } from '../review/choice.ts';
import { cleanLine } from '../text/clean.ts';
import { DiffStat } from '../ui/figures.tsx';
import { ATTEMPTS } from './pick.ts';
import type { Attempt, FilePair, Picks } from './pick.ts';

export function FilePick({
  files,
  picks,
  shown,
  seen,
  onShow,
  onPick,
}: {
  files: readonly FilePair[];
  picks: Picks;
  shown: string | null;
  seen: (attempt: Attempt, file: ApiFile) => boolean;
  onShow: (path: string) => void;
  onPick: (path: string, attempt: Attempt | null) => void;
}): ReactNode {
  return (
    <ul aria-label="Files" className="min-h-0 grow overflow-y-auto p-2">
      {files.map((both) => {
        const risky = ATTEMPTS.some((attempt) => {
          const file = both[attempt];
          return file !== null && canRun(file);
        });
        return (
          <li
            key={both.path}
            className={`rounded-md p-2 [contain-intrinsic-size:auto_4rem] [content-visibility:auto] ${shown === both.path ? 'bg-raised' : ''}`}
          >
            <button
              type="button"
              aria-pressed={shown === both.path}
              onClick={() => onShow(both.path)}
              className="flex min-h-6 w-full items-center gap-1.5 text-left hover:underline"
            >
              {risky ? <TriangleAlert size={14} aria-label="can run code" className="shrink-0 text-warn" /> : null}
              <span className="min-w-0 truncate font-mono text-sm" title={cleanLine(both.path)}>
                {cleanLine(both.path)}
              </span>
              {both.same ? <span className="shrink-0 text-xs text-muted">identical</span> : null}
            </button>
            <div
              role="radiogroup"
              aria-label={`Version of ${cleanLine(both.path)}`}
              className="mt-1 flex flex-wrap gap-x-3 text-sm"
            >
              {ATTEMPTS.map((attempt) => {
                const file = both[attempt];
                return file === null ? null : (
                  <Radio
                    key={attempt}
                    name={both.path}
                    checked={picks.get(both.path) === attempt}
                    disabled={canRun(file) && !seen(attempt, file)}
                    onPick={() => onPick(both.path, attempt)}
                  >
                    from {attempt.toUpperCase()} <DiffStat added={file.added} removed={file.removed} />
                  </Radio>
                );
              })}
              <Radio name={both.path} checked={!picks.has(both.path)} onPick={() => onPick(both.path, null)}>
                exclude
              </Radio>
            </div>
          </li>
        );
      })}
    </ul>
  );
}

function Radio({
  name,
  checked,
  disabled = false,
  onPick,
  children,
}: {
  name: string;
  checked: boolean;
  disabled?: boolean;
  onPick: () => void;
  children: ReactNode;
}): ReactNode {
  return (
    <label className={`flex min-h-6 items-center gap-1.5 ${disabled ? 'text-muted' : ''}`}>
      <input
        type="radio"
        name={name}
        checked={checked}
        disabled={disabled}
        onChange={onPick}
        className="size-4 accent-(--accent)"
      />
      <span>
        {children}
        {disabled ? ' (open its diff first)' : ''}
      </span>
    </label>
  );
}
