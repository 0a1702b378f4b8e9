// web/src/task/attacked.tsx: how a sandbox like this task's fared when it was attacked (`ags doctor --attack`).
import { ShieldAlert, ShieldCheck } from 'lucide-react';
import type { ReactNode } from 'react';
import type { ApiTaskDetail } from '../../../src/protocol/api/api.ts';
import { ago } from '../text/format.ts';
import { useNow } from '../ui/now.ts';

export function Attacked({ attacked }: Pick<ApiTaskDetail, 'attacked'>): ReactNode {
  const now = useNow();
  if (attacked === null) return null;
  const { held, of, atMs } = attacked;
  const Shield = held === of ? ShieldCheck : ShieldAlert;
  return (
    <p
      className="mt-2 flex items-center gap-2 text-sm text-muted"
      title={`A sandbox made like this one was attacked in ${of} ways; ${held} were stopped or limited.`}
    >
      <Shield size={16} aria-hidden className={held === of ? 'text-ok' : 'text-bad'} />
      <span>
        attacked {held}/{of} · {ago(atMs, now)}
      </span>
    </p>
  );
}
