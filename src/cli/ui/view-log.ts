// cli/ui/view-log.ts: the live log of one task, as `ags logs -f` prints it.
import type { EventLine } from '../../protocol/event.ts';
import { readEventPage } from '../../store/event-pages.ts';
import { createPaint } from '../terminal/colour.ts';
import { showEvent } from '../terminal/show-event.ts';
import { fromPainted, type Line, span } from './cells.ts';
import type { FeedRow } from './feed.ts';
import { createScroll } from './scroll.ts';
import { stateSpan } from './view-list.ts';
import type { View } from './view.ts';

export interface LogView extends View {
  readonly task: string;
  event(event: EventLine): void;
  /** A new run has begun: its events start again. */
  reload(): void;
}

const MOST_EVENTS = 5000;
const PAINT = createPaint(true);

/** `row` returns the task as it is now; null if it is gone. */
export function createLogView(id: string, row: () => FeedRow | null): LogView {
  const scroll = createScroll({ atEnd: true, indent: 2 });
  let events: EventLine[] = [];
  let seq = 0;
  let verbose = false;
  let columns = 0;

  const linesOf = (event: EventLine): Line[] =>
    showEvent(event, { paint: PAINT, width: columns, verbose }).split('\n').slice(0, -1).map(fromPainted);
  const reload = (): void => {
    const now = row();
    events = now === null ? [] : [...readEventPage(now.paths.events, { limit: MOST_EVENTS }).events];
    seq = events.at(-1)?.seq ?? 0;
    scroll.reset(events.flatMap(linesOf));
  };

  return {
    task: id,
    title: () => [
      span(id, 'bold'),
      span('  '),
      ...stateSpan(row()),
      span(verbose ? '  all details' : '', 'dim'),
      span(`  ${scroll.place()}`, 'dim'),
    ],
    body(size) {
      // Lines are cut to the width of the screen when they are made.
      if (size.columns !== columns) {
        columns = size.columns;
        if (seq === 0) reload();
        else scroll.reset(events.flatMap(linesOf));
      }
      const shown = scroll.body(size);
      return shown.length > 0 && events.length > 0 ? shown : [[span('Nothing has happened yet.', 'dim')]];
    },
    hints: () => [
      ['Up Down PgUp PgDn', 'scroll'],
      ['G', 'end'],
      ['v', verbose ? 'fewer details' : 'all details'],
    ],
    key(key) {
      if (scroll.key(key)) return true;
      if (key.name !== 'char' || key.text !== 'v') return false;
      verbose = !verbose;
      scroll.reset(events.flatMap(linesOf));
      return true;
    },
    event(event) {
      if (event.seq <= seq || columns === 0) return;
      seq = event.seq;
      events.push(event);
      if (events.length > 2 * MOST_EVENTS) events = events.slice(-MOST_EVENTS);
      scroll.add(linesOf(event));
    },
    reload,
  };
}
