// web/src/ui/figures.tsx: small figures that many pages show.
import type { ReactNode } from 'react';
import { sumsAt, type RunTime } from '../../../src/protocol/run-time.ts';
import { duration, money, plural, tokens } from '../text/format.ts';
import { useNow } from './now.ts';

export function DiffStat({ added, removed }: { added: number | null; removed: number | null }): ReactNode {
  if (added === null && removed === null) return null;
  return (
    <span className="tabular whitespace-nowrap">
      <span className="text-ok">+{added ?? 0}</span> <span className="text-bad">−{removed ?? 0}</span>
    </span>
  );
}

export function Files({ files }: { files: number | null }): ReactNode {
  return files === null ? null : <span className="tabular whitespace-nowrap">{plural(files, 'file')}</span>;
}

export function Elapsed({ from }: { from: number }): ReactNode {
  return <span className="tabular">{duration(useNow() - from)}</span>;
}

/** How long an agent worked. How long it waited is in the title, or beside it if `waits` is set. */
export function WorkTime({ time, waits = false }: { time: RunTime; waits?: boolean }): ReactNode {
  return time.phase === null ? (
    <Spent time={time} nowMs={time.sinceMs} waits={waits} />
  ) : (
    <Going time={time} waits={waits} />
  );
}

function Going({ time, waits }: { time: RunTime; waits: boolean }): ReactNode {
  return <Spent time={time} nowMs={useNow()} waits={waits} />;
}

function Spent({ time, nowMs, waits }: { time: RunTime; nowMs: number; waits: boolean }): ReactNode {
  const { workMs, queueMs, userMs } = sumsAt(time, nowMs);
  const all = [
    `${duration(workMs)} of work`,
    ...(queueMs < 1000 ? [] : [`${duration(queueMs)} queued`]),
    ...(userMs < 1000 ? [] : [`${duration(userMs)} waiting for you`]),
  ].join(', ');
  return (
    <span className="tabular" title={all}>
      {waits ? all : duration(workMs)}
    </span>
  );
}

/** Money if the cost is known, otherwise tokens. Never an estimate. */
export function Cost({ costMicros, tokens: count }: { costMicros: number | null; tokens: number | null }): ReactNode {
  if (costMicros !== null) return <span className="tabular">{money(costMicros)}</span>;
  return count === null || count === 0 ? null : <span className="tabular">{tokens(count)}</span>;
}

export function Kbd({ children }: { children: ReactNode }): ReactNode {
  return (
    <kbd className="inline-flex h-5 min-w-5 items-center justify-center rounded-sm border border-line bg-panel px-1 font-sans text-xs text-muted">
      {children}
    </kbd>
  );
}

export function SectionTitle({ children, count }: { children: ReactNode; count?: number }): ReactNode {
  return (
    <h2 className="flex items-baseline gap-2 text-xs font-semibold tracking-wide text-muted uppercase">
      {children}
      {count === undefined ? null : <span className="tabular font-normal">{count}</span>}
    </h2>
  );
}
