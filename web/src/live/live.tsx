// web/src/live/live.tsx: React access to the live connection.
import { createContext, use, useSyncExternalStore } from 'react';
import type { ReactNode } from 'react';
import type { Connection, Live } from './socket.ts';

const LiveContext = createContext<Live | null>(null);

export function LiveProvider({ live, children }: { live: Live; children: ReactNode }): ReactNode {
  return <LiveContext value={live}>{children}</LiveContext>;
}

export function useLive(): Live {
  const live = use(LiveContext);
  if (live === null) throw new Error('used outside of LiveProvider');
  return live;
}

export function useConnection(): Connection {
  const live = useLive();
  return useSyncExternalStore(live.onConnection, live.connection);
}
