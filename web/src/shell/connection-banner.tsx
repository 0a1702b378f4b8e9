// web/src/shell/connection-banner.tsx: warns that the server is unreachable and the page may be out of date.
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
        The server is unreachable. Running tasks continue; this page may be out of date.{' '}
        <span className="tabular">{seconds > 0 ? `Retrying in ${seconds} s.` : 'Retrying…'}</span>
      </span>
      <Button size="small" onClick={() => live.retryNow()}>
        Retry now
      </Button>
    </div>
  );
}
