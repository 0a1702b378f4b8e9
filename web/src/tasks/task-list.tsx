// web/src/tasks/task-list.tsx: the grouped task list with its shortcuts. Only visible rows are rendered.
import { useNavigate } from '@tanstack/react-router';
import { useVirtualizer } from '@tanstack/react-virtual';
import { useCallback, useLayoutEffect, useMemo, useRef, useState } from 'react';
import type { ReactNode } from 'react';
import type { ApiTask } from '../../../src/protocol/api/api.ts';
import { useAction } from '../actions/registry.ts';
import { SectionTitle } from '../ui/figures.tsx';
import { BulkBar } from './bulk-bar.tsx';
import { linesOf } from './order.ts';
import type { Line } from './order.ts';
import { useTaskActions } from './task-actions.tsx';
import { AttemptsRow, TaskRow } from './task-row.tsx';

const HEADS = ['Selected', 'State', 'Goal', 'Last action', 'Time', 'Cost', 'Changes', 'Next'];

export function TaskList({ tasks, parallel }: { tasks: readonly ApiTask[]; parallel: number }): ReactNode {
  const [open, setOpen] = useState<ReadonlySet<string>>(new Set());
  const [current, setCurrent] = useState<string | null>(null);
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const lines = useMemo(() => linesOf(tasks, open), [tasks, open]);
  const box = useRef<HTMLDivElement>(null);
  const [margin, setMargin] = useState(0);
  // The virtualizer needs the list's offset, which changes with the elements above it.
  useLayoutEffect(() => {
    const place = (): void => setMargin(box.current?.offsetTop ?? 0);
    const watch = new ResizeObserver(place);
    for (const element of box.current?.parentElement?.children ?? [])
      if (element !== box.current) watch.observe(element);
    place();
    return () => watch.disconnect();
  }, []);
  const virtual = useVirtualizer({
    count: lines.length,
    getScrollElement: () => document.querySelector('#content'),
    estimateSize: (at) => (lines[at]?.kind === 'title' ? 40 : 57),
    getItemKey: (at) => lines[at]?.key ?? at,
    scrollMargin: margin,
    overscan: 8,
  });
  const chosen = tasks.filter(({ id }) => selected.has(id));
  const select = useCallback(
    (task: ApiTask, on: boolean): void =>
      setSelected((old) => (on ? new Set([...old, task.id]) : new Set([...old].filter((id) => id !== task.id)))),
    [],
  );
  useRowKeys({
    lines,
    current,
    selected,
    select,
    move: (at) => {
      const line = lines[at];
      if (line?.kind !== 'task') return;
      setCurrent(line.task.id);
      virtual.scrollToIndex(at);
      // The row is rendered only after the list has scrolled to it.
      requestAnimationFrame(() => document.querySelector<HTMLElement>(`#row-${line.task.id}`)?.focus());
    },
  });

  return (
    <>
      <div role="table" aria-label="Tasks" aria-rowcount={lines.length + 1} ref={box} className="@container">
        <div role="row" aria-rowindex={1} className="unseen">
          {HEADS.map((head) => (
            <span key={head} role="columnheader">
              {head}
            </span>
          ))}
        </div>
        <div role="rowgroup" className="relative" style={{ height: virtual.getTotalSize() }}>
          {virtual.getVirtualItems().map((item) => {
            const line = lines[item.index];
            return line === undefined ? null : (
              <div
                key={item.key}
                role="presentation"
                ref={virtual.measureElement}
                data-index={item.index}
                className="absolute inset-x-0 top-0"
                style={{ transform: `translateY(${item.start - margin}px)` }}
              >
                {line.kind === 'title' ? (
                  <div role="row" aria-rowindex={item.index + 2} className="px-3 pt-5 pb-1">
                    <div role="cell">
                      <Title line={line} parallel={parallel} />
                    </div>
                  </div>
                ) : line.kind === 'attempts' ? (
                  <AttemptsRow
                    tasks={line.tasks}
                    index={item.index + 2}
                    open={line.open}
                    onToggle={() =>
                      setOpen((old) =>
                        old.has(line.key)
                          ? new Set([...old].filter((key) => key !== line.key))
                          : new Set([...old, line.key]),
                      )
                    }
                  />
                ) : (
                  <TaskRow
                    task={line.task}
                    index={item.index + 2}
                    nested={line.nested}
                    current={current === line.task.id}
                    selected={selected.has(line.task.id)}
                    onSelect={select}
                    onFocus={setCurrent}
                  />
                )}
              </div>
            );
          })}
        </div>
      </div>
      <BulkBar tasks={chosen} onClear={() => setSelected(new Set())} />
    </>
  );
}

function Title({ line, parallel }: { line: Extract<Line, { kind: 'title' }>; parallel: number }): ReactNode {
  return (
    <SectionTitle>
      {line.title}
      <span className="tabular font-normal normal-case">
        {line.group === 'running' ? `${line.count} of ${parallel}` : line.count}
      </span>
    </SectionTitle>
  );
}

interface RowKeys {
  readonly lines: readonly Line[];
  readonly current: string | null;
  readonly selected: ReadonlySet<string>;
  readonly select: (task: ApiTask, on: boolean) => void;
  readonly move: (at: number) => void;
}

function useRowKeys({ lines, current, selected, select, move }: RowKeys): void {
  const navigate = useNavigate();
  const actions = useTaskActions();
  const rows = lines.flatMap((line, at) => (line.kind === 'task' ? [{ task: line.task, at }] : []));
  const here = rows.findIndex(({ task }) => task.id === current);
  const task = rows[here]?.task;
  const step = (by: 1 | -1): void => {
    const next = rows[here < 0 ? 0 : Math.min(rows.length - 1, Math.max(0, here + by))];
    if (next !== undefined) move(next.at);
  };
  const at = { project: task?.project ?? '', task: task?.id ?? '' };
  const there = task !== undefined;
  useAction('row-down', () => step(1), rows.length > 0);
  useAction('row-up', () => step(-1), rows.length > 0);
  useAction('row-open', () => void navigate({ to: '/p/$project/t/$task', params: at, search: {} }), there);
  useAction('row-answer', () => void navigate({ to: '/p/$project/t/$task', params: at, search: {} }), there);
  useAction('row-review', () => void navigate({ to: '/p/$project/t/$task/changes', params: at, search: {} }), there);
  useAction('row-select', () => task !== undefined && select(task, !selected.has(task.id)), there);
  useAction('row-stop', () => task !== undefined && actions.askToStop(task), task?.live === true);
  useAction('row-restart', () => task !== undefined && actions.askToRestart(task), there && !task.live);
  useAction('row-fork', () => task !== undefined && actions.fork(task), there);
  useAction('row-remove', () => task !== undefined && actions.remove([task]), there && !task.live);
}
