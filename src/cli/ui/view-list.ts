// cli/ui/view-list.ts: the list of tasks, and the selected one in more detail below it.
import { basename } from 'node:path';
import { STATE_WORDS } from '../../protocol/run-state.ts';
import { sumsAt } from '../../protocol/run-time.ts';
import { lastEvents } from '../../store/follow-events.ts';
import { createPaint } from '../terminal/colour.ts';
import { age, count, widthOf } from '../terminal/format.ts';
import { showEvent } from '../terminal/show-event.ts';
import { changesOf, stateStyle, whatOf } from '../terminal/task-table.ts';
import { BLANK, clip, fromPainted, type Line, pad, restyled, sides, span, type Span, wrapLine } from './cells.ts';
import type { Feed, FeedRow } from './feed.ts';
import type { Hint, Size, View } from './view.ts';

export interface ListView extends View {
  selected(): FeedRow | null;
  /** Whether tasks of all projects are listed. */
  readonly all: boolean;
}

const PAINT = createPaint(true);
/** On fewer rows, the selected task is not shown in detail. */
const ROWS_FOR_DETAIL = 14;

/** null as feed: the tasks are still being read. */
export function createListView(feed: () => Feed | null, nowMs: () => number): ListView {
  let id: string | null = null;
  let at = 0;
  let top = 0;
  let all = false;
  let page = 1;
  const peek = createPeek();

  /** The selection stays with its task, wherever that moves. */
  const rowsNow = (): FeedRow[] => {
    const rows = feed()?.rows(all) ?? [];
    const place = rows.findIndex((row) => row.id === id);
    at = place >= 0 ? place : Math.max(0, Math.min(at, rows.length - 1));
    id = rows[at]?.id ?? null;
    return rows;
  };
  const select = (rows: readonly FeedRow[], wanted: number): void => {
    at = Math.max(0, Math.min(wanted, rows.length - 1));
    id = rows[at]?.id ?? null;
  };

  return {
    get all() {
      return all;
    },
    selected: () => rowsNow()[at] ?? null,
    title({ columns }) {
      const here = feed();
      const where = here === null ? '' : all || here.project === null ? 'all projects' : basename(here.project);
      return sides([span('ags', 'bold'), span('  '), span(where, 'bold')], summary(rowsNow()), columns);
    },
    body(size) {
      const rows = rowsNow();
      if (feed() === null) return [[span('Reading the tasks …', 'dim')]];
      if (rows.length === 0) return emptyList(all);
      const detailRows = size.rows < ROWS_FOR_DETAIL ? 0 : Math.max(6, Math.floor(size.rows * 0.4));
      const listRows = Math.min(size.rows - detailRows - 1, Math.max(rows.length, 1));
      page = Math.max(1, listRows);
      top = Math.max(0, Math.min(top, at, rows.length - page), at - page + 1);
      const lines = tableLines(rows, { columns: size.columns, top, page, at, projects: all, nowMs: nowMs() });
      const selected = rows[at];
      if (detailRows === 0 || selected === undefined) return lines;
      const room = size.rows - lines.length - 1;
      return [
        ...lines,
        [span('─'.repeat(size.columns), 'dim')],
        ...detail(selected, peek, { ...size, rows: room }, nowMs()),
      ];
    },
    hints() {
      const row = rowsNow()[at];
      const onRow: Hint[] = row === undefined ? [] : hintsFor(row);
      return [...onRow, ['A', all ? 'this project' : 'all projects']];
    },
    key(key) {
      const rows = rowsNow();
      switch (key.name === 'char' ? key.text : key.name) {
        case 'up':
        case 'k':
          select(rows, at - 1);
          return true;
        case 'down':
        case 'j':
          select(rows, at + 1);
          return true;
        case 'page-up':
          select(rows, at - page);
          return true;
        case 'page-down':
          select(rows, at + page);
          return true;
        case 'home':
        case 'g':
          select(rows, 0);
          return true;
        case 'end':
        case 'G':
          select(rows, rows.length - 1);
          return true;
        case 'A':
          all = !all;
          return true;
      }
      return false;
    },
  };
}

export function stateSpan(row: FeedRow | null): Span[] {
  if (row === null) return [span('removed', 'dim')];
  return [span(STATE_WORDS[row.row.state], stateStyle(row.row))];
}

function summary(rows: readonly FeedRow[]): Line {
  const some = (match: (row: FeedRow) => boolean, words: string): string[] => {
    const n = rows.filter(match).length;
    return n === 0 ? [] : [`${n} ${words}`];
  };
  const needing = rows.filter(({ row }) => row.live && row.state === 'needs-you').length;
  const needs = `${needing} ${needing === 1 ? 'needs' : 'need'} you`;
  const others = [
    ...some(({ row }) => row.live && (row.state === 'running' || row.state === 'preparing'), 'running'),
    ...some(({ row }) => row.live && row.state === 'queued', 'queued'),
    ...some(({ row }) => row.state === 'ready', STATE_WORDS.ready),
  ];
  const rest = others.length === 0 ? count(rows.length, 'task') : others.join(', ');
  return needing === 0 ? [span(rest)] : [span(needs, 'yellow'), span(`, ${rest}`)];
}

function emptyList(all: boolean): Line[] {
  return [
    BLANK,
    [span(all ? 'There are no tasks.' : 'This project has no tasks.')],
    BLANK,
    [span('Start one in another terminal:', 'dim'), span(' ags start "<goal>"')],
    ...(all ? [] : [[span('Tasks of other projects: ', 'dim'), span('A')]]),
  ];
}

function tableLines(
  rows: readonly FeedRow[],
  view: { columns: number; top: number; page: number; at: number; projects: boolean; nowMs: number },
): Line[] {
  const shown = rows.slice(view.top, view.top + view.page);
  const cells = shown.map(({ row }) => ({
    name: row.name,
    changes: changesOf(row),
    age: row.startedAtMs === 0 ? '' : age(view.nowMs - row.startedAtMs),
    project: view.projects && row.project !== null ? basename(row.project) : '',
  }));
  const widest = (key: 'name' | 'changes' | 'age' | 'project', head: string, most: number): number =>
    Math.min(most, Math.max(widthOf(head), ...cells.map((cell) => widthOf(cell[key]))));
  const narrow = view.columns < 70;
  const widths = {
    state: 11,
    name: widest('name', 'TASK', narrow ? 16 : Math.max(16, Math.floor(view.columns * 0.3))),
    changes: narrow ? 0 : widest('changes', 'CHANGES', Math.max(14, Math.floor(view.columns * 0.25))),
    age: 4,
    project: view.projects && !narrow ? widest('project', 'PROJECT', 16) : 0,
  };
  const columns = (parts: readonly (readonly [Line, number])[], last: Line): Line => [
    ...parts.filter(([, width]) => width > 0).flatMap(([line, width]) => [...pad(line, width), span('  ')]),
    ...last,
  ];
  const head = columns(
    [
      [[span('STATE')], widths.state],
      [[span('TASK')], widths.name],
      [[span('CHANGES')], widths.changes],
      [[span('AGE')], widths.age],
      [[span('PROJECT')], widths.project],
    ],
    [span('WHAT')],
  );
  const lines = shown.map((row, n): Line => {
    const cell = cells[n];
    const line = columns(
      [
        [stateSpan(row), widths.state],
        [[span(row.row.name)], widths.name],
        [[span(cell?.changes ?? '')], widths.changes],
        [[span(cell?.age ?? '')], widths.age],
        [[span(cell?.project ?? '')], widths.project],
      ],
      [span(whatOf(row.row))],
    );
    const marked: Line = [span(view.top + n === view.at ? '>' : ' '), span(' '), ...line];
    return view.top + n === view.at ? restyled(pad(marked, view.columns), 'reverse') : marked;
  });
  return [restyled([span('  '), ...head], 'dim'), ...lines];
}

/** The last lines of a log, read again only after new events. */
function createPeek(): (row: FeedRow, columns: number) => readonly Line[] {
  let key = '';
  let lines: readonly Line[] = [];
  return (row, columns) => {
    const now = `${row.id} ${row.seq} ${columns}`;
    if (now === key) return lines;
    key = now;
    lines = lastEvents(row.paths.events)
      .slice(-60)
      .flatMap((event) => showEvent(event, { paint: PAINT, width: columns, verbose: false }).split('\n').slice(0, -1))
      .map((line) => clip(fromPainted(line), columns));
    return lines;
  };
}

function detail(one: FeedRow, peek: ReturnType<typeof createPeek>, size: Size, nowMs: number): Line[] {
  const { row } = one;
  const who = row.agent === null ? 'command' : row.agent;
  const cost = row.costMicros === null ? '' : `  $${(row.costMicros / 1e6).toFixed(2)}`;
  const { workMs } = sumsAt(row.time, nowMs);
  const worked = workMs < 1000 ? '' : `  worked ${age(workMs)}`;
  const head: Line = [span(row.name, 'bold'), span('  '), ...stateSpan(one), span(`  ${who}${cost}${worked}`, 'dim')];
  const goal = wrapLine([span(row.goal?.split('\n', 1)[0] ?? whatOf(row))], size.columns).slice(0, 2);
  const reason =
    row.reason === null ? [] : wrapLine([span(row.reason, row.live ? 'yellow' : 'dim')], size.columns).slice(0, 3);
  const above = [head, ...goal, ...reason];
  const room = size.rows - above.length;
  const log = room > 1 ? peek(one, size.columns).slice(1 - room) : [];
  return [...above, ...(log.length === 0 ? [] : [BLANK, ...log])].slice(0, size.rows);
}

function hintsFor({ row, needs, interactive }: FeedRow): Hint[] {
  const agent = row.goal !== null;
  if (row.live)
    return [
      ...(needs === 'answer' ? ([['r', 'answer']] as const) : []),
      ...(interactive && needs === 'prompt' ? ([['t', 'attach']] as const) : []),
      ...(needs === 'host' ? ([['n', 'allow host']] as const) : []),
      ['Enter', 'log'],
      ['d', 'diff'],
      ...(interactive && needs !== 'prompt' ? ([['t', 'attach']] as const) : []),
      ...(agent && !interactive && needs !== 'answer' ? ([['r', 'message']] as const) : []),
      ...(agent ? ([['s', 'stop']] as const) : []),
    ];
  return [
    ['Enter', 'log'],
    ...(row.changed ? ([['d', 'diff'], ...(agent ? ([['m', 'merge']] as const) : []), ['v', 'review']] as const) : []),
    ...(agent ? ([['r', 'message'], ...(row.needsReview ? [] : ([['c', 'continue']] as const))] as const) : []),
  ];
}
