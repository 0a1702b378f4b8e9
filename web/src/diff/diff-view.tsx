// web/src/diff/diff-view.tsx: one continuous diff of many files. Only this file uses the diff library's components, so that the
// library can be replaced.
import { CodeView, WorkerPoolContextProvider } from '@pierre/diffs/react';
import type { CodeViewHandle } from '@pierre/diffs/react';
import type { CodeViewItem, CodeViewLineSelection, DiffLineAnnotation, FileDiffMetadata } from '@pierre/diffs';
import { useCallback, useEffect, useImperativeHandle, useMemo, useRef, useState } from 'react';
import type { ReactNode, Ref, RefObject } from 'react';
import { useShownTheme } from '../look/theme.ts';
import { highlighterOptions, poolOptions, THEMES } from './worker-pool.ts';
import type { DiffText, Side } from './source.ts';

export type Layout = 'unified' | 'split';
export const LAYOUTS = [
  { value: 'unified', label: 'Unified' },
  { value: 'split', label: 'Split' },
] as const;

/** Content inserted below a line; line 0 puts it above the first line. */
export interface DiffNote {
  readonly key: string;
  readonly side: Side;
  readonly line: number;
}

export interface DiffFile {
  readonly id: string;
  /** Increases whenever anything else in this object changes. */
  readonly version: number;
  readonly text: DiffText | null;
  readonly folded: boolean;
  readonly notes: readonly DiffNote[];
}

export interface LineRange {
  readonly file: string;
  readonly side: Side;
  readonly from: number;
  readonly to: number;
}

export interface DiffHandle {
  toFile(id: string): void;
  toLine(id: string, side: Side, line: number): void;
  focus(): void;
  /** The file at the top of the visible area. */
  topFile(): string | null;
}

export const HEADER_PX = 44;

interface Props {
  ref: Ref<DiffHandle>;
  label: string;
  files: readonly DiffFile[];
  layout: Layout;
  selected: LineRange | null;
  onSelect: (range: LineRange | null) => void;
  onScroll?: () => void;
  /** Called for a click on the gutter button, or a drag from it over several lines. */
  onGutter: ((range: LineRange) => void) | null;
  renderHeader: (id: string) => ReactNode;
  renderNote: (id: string, key: string) => ReactNode;
}

export function DiffView(props: Props): ReactNode {
  return (
    <WorkerPoolContextProvider poolOptions={poolOptions} highlighterOptions={highlighterOptions}>
      <View {...props} />
    </WorkerPoolContextProvider>
  );
}

function View({
  ref,
  label,
  files,
  layout,
  selected,
  onSelect,
  onScroll,
  onGutter,
  renderHeader,
  renderNote,
}: Props): ReactNode {
  const theme = useShownTheme();
  const view = useRef<CodeViewHandle<string, undefined>>(null);
  const box = useRef<HTMLDivElement | null>(null);
  const items = useItems(files);
  const hold = useHold(view);
  useImperativeHandle(ref, () => ({
    toFile: (id) => hold.at({ type: 'item', id, align: 'start' }),
    toLine: (id, side, line) => hold.at({ type: 'line', id, lineNumber: line, side: sideOf(side), align: 'center' }),
    focus: () => box.current?.focus({ preventScroll: true }),
    topFile() {
      const viewer = view.current?.getInstance();
      if (viewer === undefined) return null;
      // Of a folded or still empty file only the header is there: the next file begins just below it.
      const top = viewer.getScrollTop() + HEADER_PX / 2;
      const seen = viewer.getRenderedItems().findLast(({ id }) => (viewer.getTopForItem(id) ?? 0) <= top);
      return seen?.id ?? viewer.getRenderedItems()[0]?.id ?? null;
    },
  }));

  const gutter = useRef(onGutter);
  useEffect(() => {
    gutter.current = onGutter;
  });
  const comments = onGutter !== null;
  // Below the last file, so that it can be at the top too, however short it is.
  const [paddingBottom, setPaddingBottom] = useState(0);
  useEffect(() => {
    const element = box.current;
    if (element === null) return undefined;
    const observer = new ResizeObserver(() => setPaddingBottom(Math.max(0, element.clientHeight - HEADER_PX)));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  const options = useMemo(
    () => ({
      theme: THEMES,
      themeType: theme,
      diffStyle: layout,
      overflow: 'wrap' as const,
      diffIndicators: 'classic' as const,
      hunkSeparators: 'line-info' as const,
      lineDiffType: 'word-alt' as const,
      stickyHeaders: true,
      enableLineSelection: comments,
      enableGutterUtility: comments,
      lineHoverHighlight: 'number' as const,
      preferredHighlighter: 'highlights' as const,
      itemMetrics: { diffHeaderHeight: HEADER_PX, lineHeight: 20 },
      layout: { paddingTop: 0, paddingBottom, gap: 0 },
      onGutterUtilityClick: (range: CodeViewLineSelection['range'], context: { item: { id: string } }) =>
        gutter.current?.(rangeOf({ id: context.item.id, range })),
    }),
    [theme, layout, comments, paddingBottom],
  );
  const selectedLines = useMemo(
    () =>
      selected === null
        ? null
        : {
            id: selected.file,
            range: {
              start: selected.from,
              end: selected.to,
              side: sideOf(selected.side),
              endSide: sideOf(selected.side),
            },
          },
    [selected],
  );
  const setBox = useCallback(
    (element: HTMLDivElement | null) => {
      box.current = element;
      if (element === null) return;
      // The library's scroll area has no accessible name and cannot be focused.
      element.tabIndex = 0;
      element.setAttribute('role', 'region');
      element.setAttribute('aria-label', label);
      element.addEventListener('keydown', pressByKey);
      for (const event of ['wheel', 'pointerdown', 'touchstart', 'keydown'] as const)
        element.addEventListener(event, hold.release, { passive: true });
    },
    [label, hold],
  );
  return (
    <CodeView<string>
      ref={view}
      containerRef={setBox}
      className="diff-view h-full overflow-y-auto contain-strict outline-offset-[-2px]"
      items={items}
      options={options}
      selectedLines={selectedLines}
      onSelectedLinesChange={(next) => onSelect(next === null ? null : rangeOf(next))}
      {...(onScroll === undefined ? {} : { onScroll })}
      renderCustomHeader={(item) => renderHeader(item.id)}
      renderAnnotation={(...[annotation, , item]) => renderNote(item.id, annotation.metadata)}
    />
  );
}

type Target = Parameters<CodeViewHandle<string, undefined>['scrollTo']>[0];

/**
 * Files load and are measured while they come into view, and the ones above push the target away. The view goes there again until nothing
 * has moved for a while, or until the user scrolls.
 */
function useHold(view: RefObject<CodeViewHandle<string, undefined> | null>): {
  at(target: Target): void;
  release(): void;
} {
  const [hold] = useState(() => {
    let held: Target | null = null;
    return {
      at(target: Target): void {
        held = target;
        const end = performance.now() + MOST_HELD_MS;
        let stillSince = performance.now();
        let before = -1;
        const step = (): void => {
          const now = performance.now();
          if (held !== target || now > end || now - stillSince > STILL_MS) return;
          view.current?.scrollTo(target);
          const top = view.current?.getInstance()?.getScrollTop() ?? 0;
          if (Math.abs(top - before) > 1) stillSince = now;
          before = top;
          requestAnimationFrame(step);
        };
        step();
      },
      release(): void {
        held = null;
      },
    };
  });
  return hold;
}

const STILL_MS = 1000;
const MOST_HELD_MS = 10_000;

/** The library's buttons are not <button> elements, so Enter and Space are handled here. */
function pressByKey(event: KeyboardEvent): void {
  const [target] = event.composedPath();
  if (!(target instanceof HTMLElement) || !target.hasAttribute('data-expand-button')) return;
  if (event.key !== 'Enter' && event.key !== ' ') return;
  event.preventDefault();
  target.click();
}

const NOTHING: FileDiffMetadata = {
  name: 'nothing',
  type: 'change',
  hunks: [],
  splitLineCount: 0,
  unifiedLineCount: 0,
  isPartial: true,
  additionLines: [],
  deletionLines: [],
  additionCharacterCount: 0,
  deletionCharacterCount: 0,
};

/** Reuses item objects while their file is unchanged: the library compares items by identity. */
function useItems(files: readonly DiffFile[]): readonly CodeViewItem<string>[] {
  const [made] = useState(() => new Map<string, { version: number; item: CodeViewItem<string> }>());
  return useMemo(
    () =>
      files.map((file) => {
        const before = made.get(file.id);
        if (before?.version === file.version) return before.item;
        const item = itemOf(file);
        made.set(file.id, { version: file.version, item });
        return item;
      }),
    [files, made],
  );
}

function itemOf({ id, version, text, folded, notes }: DiffFile): CodeViewItem<string> {
  const annotations = notes.map((note): DiffLineAnnotation<string> => ({
    side: sideOf(note.side),
    lineNumber: note.line,
    metadata: note.key,
  }));
  return { id, type: 'diff', fileDiff: text?.parsed ?? NOTHING, version, collapsed: folded, annotations };
}

const sideOf = (side: Side): 'deletions' | 'additions' => (side === 'old' ? 'deletions' : 'additions');

function rangeOf({ id, range }: CodeViewLineSelection): LineRange {
  const side: Side = (range.endSide ?? range.side) === 'deletions' ? 'old' : 'new';
  // A comment refers to lines of one side only.
  const oneSide = (range.side ?? range.endSide) === (range.endSide ?? range.side);
  const from = oneSide ? Math.min(range.start, range.end) : range.end;
  return { file: id, side, from, to: Math.max(from, range.end, oneSide ? range.start : 0) };
}
