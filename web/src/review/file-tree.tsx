// web/src/review/file-tree.tsx: the changed files as a keyboard-accessible tree with checkboxes. Only visible rows are rendered.
import { useVirtualizer } from '@tanstack/react-virtual';
import { Check, ChevronDown, ChevronRight, Eye, Minus, TriangleAlert } from 'lucide-react';
import { useEffect, useId, useMemo, useRef, useState } from 'react';
import type { KeyboardEvent, ReactNode } from 'react';
import type { ApiFile } from '../../../src/protocol/api/review.ts';
import { cleanLine } from '../text/clean.ts';
import { canRun, inclusionOf, inclusionOfAll } from './choice.ts';
import type { Inclusion } from './choice.ts';
import { KindLetter } from './file-header.tsx';
import { useReview } from './review-state.ts';
import { treeRows } from './tree.ts';
import type { TreeRow } from './tree.ts';

const ROW_PX = 28;

export function FileTree({ filter }: { filter: string }): ReactNode {
  const review = useReview();
  const [closed, setClosed] = useState<ReadonlySet<string>>(new Set());
  const [at, setAt] = useState<string | null>(null);
  const box = useRef<HTMLDivElement>(null);
  const id = useId();
  const rows = useMemo(() => {
    const wanted = filter.toLowerCase();
    const files = review.files.filter(({ path }) => path.toLowerCase().includes(wanted));
    return treeRows(files, wanted === '' ? closed : NONE);
  }, [review.files, filter, closed]);
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => box.current,
    estimateSize: () => ROW_PX,
    overscan: 8,
  });
  const active = Math.max(
    0,
    rows.findIndex(({ key }) => key === at),
  );
  const current = review.current;
  useEffect(() => {
    if (current !== null) setAt(`file:${current.n}`);
  }, [current]);
  useEffect(() => {
    if (rows.length > 0) virtual.scrollToIndex(active, { align: 'auto' });
  }, [active, rows.length, virtual]);

  const fold = (row: TreeRow, open: boolean): void => {
    const next = new Set(closed);
    if (open) next.delete(row.key);
    else next.add(row.key);
    setClosed(next);
  };
  const toggle = (row: TreeRow): void => {
    const files = filesOf(row);
    review.include(files, inclusionOfAll(review.choice, files) !== 'all');
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const row = rows[active];
    if (row === undefined) return;
    const go = (index: number): void => setAt(rows[Math.min(rows.length - 1, Math.max(0, index))]?.key ?? null);
    const parent = (): void => go(rows.findLastIndex((one, index) => index < active && one.level < row.level));
    const keys: Readonly<Record<string, () => void>> = {
      ArrowDown: () => go(active + 1),
      ArrowUp: () => go(active - 1),
      Home: () => go(0),
      End: () => go(rows.length - 1),
      ArrowRight: () => (row.kind === 'file' ? undefined : row.open ? go(active + 1) : fold(row, true)),
      ArrowLeft: () => (row.kind !== 'file' && row.open ? fold(row, false) : parent()),
      Enter: () => (row.kind === 'file' ? review.goTo(row.file) : fold(row, !row.open)),
      ' ': () => toggle(row),
    };
    const act = keys[event.key];
    if (act === undefined) return;
    event.preventDefault();
    act();
  };
  return (
    <div
      ref={box}
      role="tree"
      aria-label="Changed files"
      aria-multiselectable
      tabIndex={0}
      aria-activedescendant={rows.length === 0 ? undefined : `${id}-${active}`}
      onKeyDown={onKeyDown}
      className="group/tree min-h-40 shrink-0 grow basis-40 overflow-y-auto px-2 pb-2 outline-offset-[-2px]"
    >
      <div role="presentation" className="relative" style={{ height: virtual.getTotalSize() }}>
        {virtual.getVirtualItems().map(({ index, start }) => {
          const row = rows[index];
          return row === undefined ? null : (
            // oxlint-disable-next-line jsx-a11y/click-events-have-key-events -- the tree element handles the keys of its rows
            <div
              key={row.key}
              tabIndex={-1}
              id={`${id}-${index}`}
              role="treeitem"
              aria-level={row.level}
              aria-setsize={row.of}
              aria-posinset={row.at}
              aria-expanded={row.kind === 'file' ? undefined : row.open}
              aria-checked={ARIA[inclusionOfAll(review.choice, filesOf(row))]}
              aria-selected={row.kind === 'file' && row.file === current}
              data-active={index === active}
              className="absolute inset-x-0 top-0 flex h-7 cursor-default items-center gap-1 rounded-md pr-1 select-none hover:bg-raised aria-selected:bg-raised group-focus-visible/tree:data-[active=true]:outline-2 group-focus-visible/tree:data-[active=true]:outline-accent"
              style={{ transform: `translateY(${start}px)`, paddingLeft: (row.level - 1) * 14 }}
              onClick={() => {
                box.current?.focus({ preventScroll: true });
                setAt(row.key);
                if (row.kind === 'file') review.goTo(row.file);
                else fold(row, !row.open);
              }}
            >
              <Row row={row} onToggle={() => toggle(row)} />
            </div>
          );
        })}
      </div>
    </div>
  );
}

const NONE: ReadonlySet<string> = new Set();
const ARIA = { all: true, some: 'mixed', none: false } as const satisfies Record<Inclusion, boolean | 'mixed'>;
const filesOf = (row: TreeRow): readonly ApiFile[] => (row.kind === 'file' ? [row.file] : row.files);

function Row({ row, onToggle }: { row: TreeRow; onToggle: () => void }): ReactNode {
  const review = useReview();
  if (row.kind !== 'file') {
    return (
      <>
        {row.open ? (
          <ChevronDown size={14} aria-hidden className="shrink-0 text-muted" />
        ) : (
          <ChevronRight size={14} aria-hidden className="shrink-0 text-muted" />
        )}
        <Tick taken={inclusionOfAll(review.choice, row.files)} onToggle={onToggle} />
        <span
          className={`min-w-0 grow truncate ${row.kind === 'lane' ? 'text-sm font-semibold' : 'text-sm text-muted'} ${row.key === 'host' || row.key === 'ci' ? 'text-warn' : ''}`}
        >
          {cleanLine(row.name)}
        </span>
        <span className={row.kind === 'lane' ? 'tabular px-1 text-xs text-muted' : 'unseen'}>
          {row.files.length}
          <span className="unseen"> files</span>
        </span>
      </>
    );
  }
  const { file } = row;
  const viewed = review.isViewed(file);
  return (
    <>
      <span className="w-3.5 shrink-0" />
      <Tick
        taken={inclusionOf(review.choice, file.n)}
        onToggle={onToggle}
        dim={canRun(file) && !review.wasSeen(file)}
      />
      {canRun(file) ? <TriangleAlert size={14} aria-hidden className="shrink-0 text-warn" /> : null}
      <span
        title={cleanLine(file.path)}
        className={`min-w-0 grow truncate font-mono text-sm ${viewed ? 'text-muted' : ''} ${file.kind === 'deleted' ? 'line-through' : ''}`}
      >
        {cleanLine(row.name)}
      </span>
      {canRun(file) ? <span className="unseen">, can run code</span> : null}
      {file.conflict ? <span className="shrink-0 text-xs text-bad">conflict</span> : null}
      {viewed ? <Eye size={14} aria-label="viewed" className="shrink-0 text-muted" /> : null}
      <KindLetter kind={file.kind} />
    </>
  );
}

/** For the mouse only: the row itself serves the keyboard and screen readers. */
function Tick({ taken, onToggle, dim = false }: { taken: Inclusion; onToggle: () => void; dim?: boolean }): ReactNode {
  return (
    <span
      aria-hidden
      data-tick={taken}
      className="flex size-6 shrink-0 items-center justify-center"
      onClick={(event) => {
        event.stopPropagation();
        onToggle();
      }}
    >
      <span
        className={`flex size-4 items-center justify-center rounded-sm border text-on-accent ${taken === 'none' ? 'border-line-strong bg-bg' : 'border-accent bg-accent'} ${dim ? 'opacity-50' : ''}`}
      >
        {taken === 'all' ? (
          <Check size={12} strokeWidth={3} />
        ) : taken === 'some' ? (
          <Minus size={12} strokeWidth={3} />
        ) : null}
      </span>
    </span>
  );
}
