// web/src/shell/connection-banner.tsx: says quietly that what is shown may be old, and when it is tried again.
import { WifiOff } from 'lucide-react';
import type { ReactNode } from 'react';
import { useConnection, useLive } from '../live/live.tsx';
import { Button } from '../ui/button.tsx';
import { useNow } from '../ui/now.ts';

const QUIET_MS = 2000;

export function ConnectionBanner(): ReactNode {
  const { state } = useConnection();
  return <div className="md:col-start-2">{state === 'lost' ? <Lost /> : null}</div>;
}

function Lost(): ReactNode {
  const live = useLive();
  const { retryAtMs, lostAtMs } = useConnection();
  const now = useNow();
  if (lostAtMs === null || now - lostAtMs < QUIET_MS) return null;
  const seconds = retryAtMs === null ? 0 : Math.max(0, Math.ceil((retryAtMs - now) / 1000));
  return (
    <div role="status" className="flex min-h-10 flex-wrap items-center gap-x-3 gap-y-1 bg-warn-bg px-4 py-1 text-warn">
      <WifiOff size={16} aria-hidden />
      <span className="grow">
        The server is not there. Running tasks go on without it; what you see is from before.{' '}
        <span className="tabular">{seconds > 0 ? `Next try in ${seconds}s.` : 'Trying…'}</span>
      </span>
      <Button size="small" onClick={() => live.retryNow()}>
        Try now
      </Button>
    </div>
  );
}
