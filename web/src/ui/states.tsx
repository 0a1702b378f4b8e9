// web/src/ui/states.tsx: empty, failed and loading states.
import type { ReactNode } from 'react';
import { useEffect, useState } from 'react';
import { ApiRefusal } from '../api/client.ts';
import { cleanLine } from '../text/clean.ts';
import { Button } from './button.tsx';

export function Empty({ title, icon, children }: { title: string; icon?: ReactNode; children?: ReactNode }): ReactNode {
  return (
    <div className="flex flex-col items-center gap-2 px-4 py-12 text-center">
      {icon === undefined ? null : <div className="mb-1 text-muted">{icon}</div>}
      <p className="text-lg font-medium">{title}</p>
      {children === undefined ? null : <div className="max-w-prose text-muted">{children}</div>}
    </div>
  );
}

/** The error, its hint and a retry button. `tight`: without margins, for forms and bars. */
export function Failure({
  error,
  retry,
  title,
  tight = false,
}: {
  error: unknown;
  retry?: () => void;
  title?: string;
  tight?: boolean;
}): ReactNode {
  const message = error instanceof Error ? cleanLine(error.message) : 'Something went wrong.';
  const hint = error instanceof ApiRefusal ? (error.hint ?? null) : null;
  return (
    <div
      role="alert"
      className={`rounded-lg border border-bad bg-bad-bg wrap-anywhere ${tight ? 'p-3 text-sm' : 'm-4 p-4'}`}
    >
      <p className="font-medium text-bad">{title ?? message}</p>
      {title === undefined ? null : <p className="mt-1">{message}</p>}
      {hint === null ? null : <p className="mt-1 text-sm">{cleanLine(hint)}</p>}
      {retry === undefined ? null : (
        <Button className="mt-3" onClick={retry}>
          Try again
        </Button>
      )}
    </div>
  );
}

/** Placeholder bars, shown only after a short delay so that fast responses do not flicker. */
export function Skeleton({ rows = 6, label }: { rows?: number; label: string }): ReactNode {
  const [late, setLate] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setLate(true), 150);
    return () => clearTimeout(timer);
  }, []);
  if (!late) return null;
  return (
    <div role="status" aria-label={label} className="flex flex-col gap-3 p-4">
      {Array.from({ length: rows }, (_, row) => (
        <div key={row} className="h-10 animate-pulse rounded-md bg-raised" />
      ))}
    </div>
  );
}
