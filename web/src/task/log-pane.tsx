// web/src/task/log-pane.tsx: all events of a task as text, with search and download.
import { useVirtualizer } from '@tanstack/react-virtual';
import { Download, FileDown, X } from 'lucide-react';
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'react';
import type { ReactNode } from 'react';
import type { ApiEvent, ApiTaskDetail } from '../../../src/protocol/api/api.ts';
import type { EventLog, EventLogState } from '../live/event-log.ts';
import { clean } from '../text/clean.ts';
import { clock } from '../text/format.ts';
import { IconButton } from '../ui/button.tsx';
import { SearchField } from '../ui/fields.tsx';
import { PaneFrame } from './pane-frame.tsx';

interface LogLine {
  readonly key: string;
  readonly at: string;
  readonly type: string;
  readonly text: string;
}

export default function LogPane({
  task,
  log,
  state,
  onClose,
}: {
  task: ApiTaskDetail;
  log: EventLog | null;
  state: EventLogState;
  onClose: () => void;
}): ReactNode {
  const [words, setWords] = useState('');
  const [follow, setFollow] = useState(true);
  const box = useRef<HTMLDivElement>(null);
  const lines = useMemo(() => state.events.flatMap(linesOf), [state.events]);
  const shown = useMemo(() => {
    const wanted = words.toLowerCase();
    return wanted === '' ? lines : lines.filter((line) => `${line.type} ${line.text}`.toLowerCase().includes(wanted));
  }, [lines, words]);
  const virtual = useVirtualizer({
    count: shown.length,
    getScrollElement: () => box.current,
    estimateSize: () => 20,
    getItemKey: (at) => shown[at]?.key ?? at,
    overscan: 20,
  });
  const total = virtual.getTotalSize();
  useLayoutEffect(() => {
    if (follow && box.current !== null) box.current.scrollTop = box.current.scrollHeight;
  }, [follow, total, shown.length]);
  // Unlike the timeline, the log loads all earlier events.
  useEffect(() => {
    if (state.more) void log?.readEarlier();
  }, [log, state.more, state.earlier]);
  const download = (): void => {
    const text = lines.map((line) => `${line.at} ${line.type} ${line.text}`).join('\n');
    const link = document.createElement('a');
    link.href = URL.createObjectURL(new Blob([text], { type: 'text/plain' }));
    link.download = `${task.name}.log`;
    link.click();
    URL.revokeObjectURL(link.href);
  };
  return (
    <PaneFrame
      title="Logs"
      tools={
        <>
          <SearchField label="Search logs" value={words} onChange={setWords} className="w-40" />
          <span className="tabular text-sm text-muted">{shown.length} lines</span>
          <IconButton label="Download events" onClick={download}>
            <Download size={16} aria-hidden />
          </IconButton>
          {task.kind === 'agent' ? (
            <a
              href={`/api/tasks/${task.id}/log`}
              download={`${task.name}.log`}
              title="Download raw agent output"
              aria-label="Download raw agent output"
              className="flex size-8 items-center justify-center rounded-md text-muted hover:bg-raised hover:text-text"
            >
              <FileDown size={16} aria-hidden />
            </a>
          ) : null}
          <IconButton label="Close logs" onClick={onClose}>
            <X size={16} aria-hidden />
          </IconButton>
        </>
      }
    >
      <div
        ref={box}
        role="group"
        aria-label="Log lines"
        tabIndex={0}
        className="h-full overflow-auto font-mono text-sm outline-offset-[-2px]"
        onScroll={() => {
          const at = box.current;
          if (at !== null) setFollow(at.scrollHeight - at.scrollTop - at.clientHeight < 24);
        }}
      >
        <div className="relative" style={{ height: total }}>
          {virtual.getVirtualItems().map((row) => {
            const line = shown[row.index];
            return line === undefined ? null : (
              <div
                key={row.key}
                ref={virtual.measureElement}
                data-index={row.index}
                className="absolute inset-x-0 top-0 flex gap-3 px-4"
                style={{ transform: `translateY(${row.start}px)` }}
              >
                <span className="tabular shrink-0 text-muted">{line.at}</span>
                <span className="hidden w-32 shrink-0 truncate text-muted sm:block">{line.type}</span>
                <span className="min-w-0 whitespace-pre-wrap wrap-anywhere">{line.text}</span>
              </div>
            );
          })}
        </div>
      </div>
    </PaneFrame>
  );
}

/** All fields of an event as text. */
function linesOf(event: ApiEvent): LogLine[] {
  const { seq, at, type, ...rest } = event;
  const when = clock(Date.parse(at), true);
  const words = Object.entries(rest).flatMap(([name, value]) =>
    value === null || value === '' || name === 'task'
      ? []
      : [name === 'text' || name === 'output' ? asText(value) : `${name}=${asText(value)}`],
  );
  return clean(words.join(' '))
    .trimEnd()
    .split('\n')
    .map((text, line) => ({ key: `${seq}.${line}`, at: when, type: line === 0 ? type : '', text }));
}

const asText = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value));
