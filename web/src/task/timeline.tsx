// web/src/task/timeline.tsx: what the agent says and does, newest last. Only visible items are rendered.
// Invariant: the page scrolls by itself only while the reader is at the end.
import { useVirtualizer } from '@tanstack/react-virtual';
import { ArrowDown } from 'lucide-react';
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'react';
import type { ReactNode } from 'react';
import { useAction } from '../actions/registry.ts';
import type { EventLog, EventLogState } from '../live/event-log.ts';
import { Button } from '../ui/button.tsx';
import { Segments } from '../ui/fields.tsx';
import { Empty, Failure, Skeleton } from '../ui/states.tsx';
import { FILTERS, passes } from './item.ts';
import type { Filter, Item } from './item.ts';
import { TimelineItem } from './items.tsx';
import type { ItemContext } from './items.tsx';

const NEAR_END_PX = 48;

export function Timeline({
  items,
  log,
  state,
  filter,
  onFilter,
  context,
}: {
  items: readonly Item[];
  log: EventLog | null;
  state: EventLogState;
  filter: Filter;
  onFilter: (filter: Filter) => void;
  context: ItemContext;
}): ReactNode {
  const shown = useMemo(() => items.filter((item) => passes(filter, item)), [items, filter]);
  const box = useRef<HTMLDivElement>(null);
  const [atEnd, setAtEnd] = useState(true);
  const [seen, setSeen] = useState(0);
  const virtual = useVirtualizer({
    count: shown.length,
    getScrollElement: () => box.current,
    estimateSize: () => 40,
    getItemKey: (at) => shown[at]?.key ?? at,
    overscan: 12,
    paddingStart: 8,
    paddingEnd: 16,
  });
  const total = virtual.getTotalSize();
  const toEnd = (): void => {
    if (box.current !== null) box.current.scrollTop = box.current.scrollHeight;
    setAtEnd(true);
  };

  useLayoutEffect(() => {
    if (atEnd && box.current !== null) box.current.scrollTop = box.current.scrollHeight;
  }, [atEnd, total, shown.length]);
  useEffect(() => {
    if (atEnd) setSeen(shown.length);
  }, [atEnd, shown.length]);
  const place = useScrollAnchor(shown, virtual, {
    top: () => box.current?.scrollTop ?? 0,
    // Set scrollTop directly: after the virtualizer's own scrolling, it ignores rows above that turn out smaller.
    to(top) {
      if (box.current !== null) box.current.scrollTop = top;
    },
  });

  const onScroll = (): void => {
    const at = box.current;
    if (at === null) return;
    place.scrolled();
    setAtEnd(at.scrollHeight - at.scrollTop - at.clientHeight < NEAR_END_PX);
    if (at.scrollTop < 200 && state.more) void log?.readEarlier();
  };
  useAction('latest', toEnd);
  const turns = shown.flatMap((item, at) => (item.kind === 'started' || item.kind === 'goal' ? [at] : []));
  const goTurn = (step: 1 | -1): void => {
    const here = virtual.getVirtualItems().find((item) => item.end > (box.current?.scrollTop ?? 0))?.index ?? 0;
    const next = step === 1 ? turns.find((at) => at > here) : turns.findLast((at) => at < here);
    if (next === undefined) return;
    setAtEnd(false);
    virtual.scrollToIndex(next, { align: 'start' });
  };
  useAction('turn-before', () => goTurn(-1), turns.length > 0);
  useAction('turn-after', () => goTurn(1), turns.length > 0);

  const fresh = Math.max(0, shown.length - seen);
  return (
    <section aria-label="Timeline" className="relative flex min-h-0 grow flex-col">
      <div className="flex flex-wrap items-center gap-2 border-b border-line px-4 py-1.5">
        <h2 className="font-medium">Timeline</h2>
        <Segments
          label="Show"
          value={filter}
          choices={FILTERS.map((value) => ({ value, label: value.charAt(0).toUpperCase() + value.slice(1) }))}
          onChange={onFilter}
        />
      </div>
      <div
        ref={box}
        role={shown.length === 0 ? 'group' : 'feed'}
        aria-label="Agent activity"
        aria-busy={!state.loaded}
        tabIndex={0}
        onScroll={onScroll}
        className="min-h-0 grow overflow-y-auto outline-offset-[-2px]"
      >
        {state.error === null ? null : <Failure error={state.error} title="Cannot read the history" />}
        {state.loaded ? null : <Skeleton label="Loading the history" />}
        {state.loaded && shown.length === 0 ? (
          <Empty title={filter === 'all' ? 'No activity yet' : 'No events of this kind'} />
        ) : null}
        <div role="presentation" className="relative" style={{ height: total }}>
          {virtual.getVirtualItems().map((row) => {
            const item = shown[row.index];
            return item === undefined ? null : (
              <article
                key={row.key}
                ref={virtual.measureElement}
                data-index={row.index}
                data-kind={item.kind}
                aria-posinset={row.index + 1}
                aria-setsize={state.more ? -1 : shown.length}
                aria-label={item.kind}
                className="absolute inset-x-0 top-0"
                style={{ transform: `translateY(${row.start}px)` }}
              >
                <TimelineItem item={item} context={context} />
              </article>
            );
          })}
        </div>
      </div>
      {!atEnd && shown.length > 0 ? (
        <Button
          onClick={toEnd}
          className="absolute bottom-3 left-1/2 -translate-x-1/2 rounded-full shadow-pop"
          size="small"
        >
          <ArrowDown size={14} aria-hidden />
          {fresh > 0 ? `${fresh} new, jump to latest` : 'Jump to latest'}
        </Button>
      ) : null}
    </section>
  );
}

interface Anchor {
  readonly key: number;
  /** Distance in pixels from the start of this item to the top of the visible area. */
  readonly past: number;
}

/**
 * Keeps the item being read in place while earlier events load above it and their estimated heights are corrected, until the
 * reader scrolls.
 */
function useScrollAnchor(
  shown: readonly Item[],
  virtual: {
    readonly measurementsCache: readonly { readonly start: number }[];
    getTotalSize(): number;
    getVirtualItems(): readonly { readonly index: number; readonly start: number; readonly end: number }[];
  },
  scroll: { top(): number; to(top: number): void },
): { scrolled(): void } {
  const first = useRef<number | undefined>(undefined);
  const anchor = useRef<Anchor | null>(null);
  const held = useRef(false);
  const note = (): void => {
    const top = scroll.top();
    const place = virtual.getVirtualItems().find(({ end }) => end > top);
    const item = place === undefined ? undefined : shown[place.index];
    if (place !== undefined && item !== undefined) anchor.current = { key: item.key, past: top - place.start };
  };
  const wanted = (): number | null => {
    const { current: kept } = anchor;
    if (kept === null) return null;
    // Makes the virtualizer measure new items.
    virtual.getTotalSize();
    const start = virtual.measurementsCache[shown.findIndex(({ key }) => key >= kept.key)]?.start;
    return start === undefined ? null : start + kept.past;
  };
  const isThere = (top: number | null): boolean => top !== null && Math.abs(top - scroll.top()) <= 1;
  useLayoutEffect(() => {
    const was = first.current;
    first.current = shown[0]?.key;
    if (was !== undefined && first.current !== undefined && first.current < was) held.current = true;
    if (!held.current) return note();
    const top = wanted();
    if (top !== null && !isThere(top)) scroll.to(top);
  });
  return {
    scrolled() {
      // Ignore scroll events caused by our own corrections.
      if (held.current && isThere(wanted())) return;
      held.current = false;
      note();
    },
  };
}
