// web/src/task/use-log.ts: React access to a task's event log and timeline items.
import { useEffect, useMemo, useRef, useState, useSyncExternalStore } from 'react';
import { openEventLog } from '../live/event-log.ts';
import type { EventLog, EventLogState } from '../live/event-log.ts';
import { useLive } from '../live/live.tsx';
import { createFold } from './fold.ts';
import type { Fold } from './fold.ts';
import type { Item } from './item.ts';

const NOTHING: EventLogState = { events: [], version: 0, earlier: 0, loaded: false, more: false, error: null };

export function useLog(task: string): { log: EventLog | null; state: EventLogState } {
  const live = useLive();
  const [log, setLog] = useState<EventLog | null>(null);
  useEffect(() => {
    const opened = openEventLog(live, task);
    setLog(opened);
    return () => {
      opened.close();
      setLog(null);
    };
  }, [live, task]);
  const state = useSyncExternalStore(
    (changed) => log?.subscribe(changed) ?? (() => undefined),
    () => log?.state() ?? NOTHING,
  );
  return { log, state };
}

/** New events extend the existing items; only an earlier page rebuilds them. */
export function useItems({ events, earlier, version }: EventLogState): readonly Item[] {
  const kept = useRef<{ fold: Fold; earlier: number; count: number; from: number } | null>(null);
  return useMemo(() => {
    const from = events[0]?.seq ?? 0;
    let now = kept.current;
    if (now === null || now.earlier !== earlier || now.from !== from || now.count > events.length)
      now = { fold: createFold(), earlier, count: 0, from };
    for (const event of events.slice(now.count)) now.fold.push(event);
    kept.current = { ...now, count: events.length };
    return [...now.fold.items];
    // `version` changes when `events` grows.
    // oxlint-disable-next-line react/exhaustive-deps
  }, [events, earlier, version]);
}
