// web/src/task/tool-items.tsx: timeline items of tool calls: reads, commands, edits and others.
import { ChevronDown, ChevronRight, FilePen, FileSearch, Globe, SquareTerminal, Wrench } from 'lucide-react';
import { useState } from 'react';
import type { ReactNode } from 'react';
import { clean, cleanLine } from '../text/clean.ts';
import { plural, took } from '../text/format.ts';
import { useNow } from '../ui/now.ts';
import type { ItemOf, Tool } from './item.ts';
import { Output } from './output.tsx';

export function ExploreItem({ item }: { item: ItemOf<'explore'> }): ReactNode {
  const [open, setOpen] = useState(false);
  const reads = item.tools.filter(({ action }) => action.kind === 'read').length;
  const searches = item.tools.length - reads;
  const [first] = item.tools;
  const words =
    item.tools.length === 1 && first !== undefined
      ? describe(first)
      : [reads > 0 ? `Read ${plural(reads, 'file')}` : '', searches > 0 ? `searched ${plural(searches, 'time')}` : '']
          .filter((part) => part !== '')
          .join(', ');
  const failed = item.tools.filter(({ end }) => end !== null && end.outcome !== 'done');
  return (
    <Collapsible
      icon={<FileSearch size={16} aria-hidden />}
      open={open}
      onToggle={() => setOpen(!open)}
      head={<span className="text-muted">{words.charAt(0).toUpperCase() + words.slice(1)}</span>}
      end={failed.length > 0 ? <span className="text-sm text-bad">{failed.length} failed</span> : null}
    >
      <ul className="font-mono text-sm">
        {item.tools.map((tool) => (
          <li key={tool.id} className="flex flex-wrap gap-x-3">
            <span className="min-w-0 wrap-anywhere">{describe(tool)}</span>
            <ToolOutcome tool={tool} quiet />
            {tool.end !== null && tool.end.outcome !== 'done' ? (
              <span className="text-bad">{cleanLine(tool.end.output, 200)}</span>
            ) : null}
          </li>
        ))}
      </ul>
    </Collapsible>
  );
}

export function CommandItem({ item: { tool } }: { item: ItemOf<'command'> }): ReactNode {
  // A refused command stays closed: the hook's own item gives the reason.
  const failed = tool.end?.outcome === 'failed';
  const [open, setOpen] = useState<boolean | null>(null);
  const command = tool.action.kind === 'command' ? tool.action.command : '';
  const shown = open ?? failed;
  return (
    <Collapsible
      icon={<SquareTerminal size={16} aria-hidden />}
      open={shown}
      onToggle={() => setOpen(!shown)}
      head={
        <code className="block truncate font-mono text-sm">
          <span className="text-muted">$ </span>
          {cleanLine(command.split('\n')[0] ?? '', 300)}
        </code>
      }
      end={<ToolOutcome tool={tool} />}
    >
      {command.includes('\n') || command.length > 100 ? (
        <pre className="font-mono text-sm whitespace-pre-wrap wrap-anywhere">{clean(command)}</pre>
      ) : null}
      {tool.end === null ? null : tool.end.output.trim() === '' ? (
        <p className="text-sm text-muted">No output.</p>
      ) : (
        <Output text={tool.end.output} label={`Output of ${cleanLine(command, 60)}`} />
      )}
    </Collapsible>
  );
}

export function EditItem({ item: { tool } }: { item: ItemOf<'edit'> }): ReactNode {
  const failed = tool.end !== null && tool.end.outcome !== 'done';
  const [open, setOpen] = useState<boolean | null>(null);
  const shown = open ?? failed;
  const content = tool.action.kind === 'write' ? (tool.action.content ?? '') : '';
  return (
    <Collapsible
      icon={<FilePen size={16} aria-hidden />}
      open={shown}
      onToggle={() => setOpen(!shown)}
      head={<span className="block truncate">{describe(tool)}</span>}
      end={
        <span className="flex items-center gap-3">
          {content === '' ? null : (
            <span className="tabular text-sm text-muted">{plural(content.trimEnd().split('\n').length, 'line')}</span>
          )}
          <ToolOutcome tool={tool} quiet />
        </span>
      }
    >
      {content === '' ? null : <Output text={content} few={20} label={`Content: ${describe(tool)}`} />}
      {failed && tool.end !== null ? <Output text={tool.end.output} label="Error" /> : null}
    </Collapsible>
  );
}

export function OtherItem({ item: { tool } }: { item: ItemOf<'other'> }): ReactNode {
  const [open, setOpen] = useState(false);
  const fetched = tool.action.kind === 'fetch';
  return (
    <Collapsible
      icon={fetched ? <Globe size={16} aria-hidden /> : <Wrench size={16} aria-hidden />}
      open={open}
      onToggle={() => setOpen(!open)}
      head={<span className="block truncate">{describe(tool)}</span>}
      end={<ToolOutcome tool={tool} />}
    >
      {tool.action.kind === 'other' ? <Output text={tool.action.input} label="Input" /> : null}
      {tool.end === null ? null : <Output text={tool.end.output} label="Result" />}
    </Collapsible>
  );
}

function describe({ action, tool }: Tool): string {
  switch (action.kind) {
    case 'command':
      return `Ran ${cleanLine(action.command, 200)}`;
    case 'write':
      return `${VERBS[action.change]} ${shortPath(action.path)}`;
    case 'read':
      return `Read ${shortPath(action.path)}`;
    case 'search':
      return `Searched for ${cleanLine(action.what, 200)}`;
    case 'fetch':
      return `Fetched ${cleanLine(action.url, 200)}`;
    case 'other':
      return cleanLine(tool, 100);
  }
}

const VERBS = { write: 'Wrote', edit: 'Edited', delete: 'Deleted' } as const;
const shortPath = (path: string): string => cleanLine(path, 300);

function ToolOutcome({ tool: { end, atMs, action }, quiet = false }: { tool: Tool; quiet?: boolean }): ReactNode {
  if (end === null) return <RunningTime from={atMs} />;
  const time = quiet && end.tookMs < 1000 ? null : <span className="tabular text-muted">{took(end.tookMs)}</span>;
  if (end.outcome === 'refused')
    return <span className="flex gap-2 text-sm whitespace-nowrap text-bad">refused {time}</span>;
  const word =
    end.exitCode !== null && action.kind === 'command'
      ? `exit ${end.exitCode}`
      : end.outcome === 'failed'
        ? 'failed'
        : '';
  return (
    <span className={`flex gap-2 text-sm whitespace-nowrap ${end.outcome === 'done' ? 'text-muted' : 'text-bad'}`}>
      {quiet && end.outcome === 'done' ? null : <span>{word}</span>}
      {time}
    </span>
  );
}

function RunningTime({ from }: { from: number }): ReactNode {
  return (
    <span className="tabular flex items-center gap-2 text-sm whitespace-nowrap text-info">
      <span aria-hidden className="size-2 animate-pulse rounded-full bg-info" />
      {took(Math.max(0, useNow() - from))}
    </span>
  );
}

export function Collapsible({
  icon,
  open,
  onToggle,
  head,
  end,
  children,
}: {
  icon: ReactNode;
  open: boolean;
  onToggle: () => void;
  head: ReactNode;
  end?: ReactNode;
  children: ReactNode;
}): ReactNode {
  const Sign = open ? ChevronDown : ChevronRight;
  return (
    <div>
      <button
        type="button"
        aria-expanded={open}
        onClick={onToggle}
        className="-mx-1 flex min-h-7 w-[calc(100%+0.5rem)] items-center gap-2 rounded-md px-1 text-left hover:bg-raised"
      >
        <span className="shrink-0 text-muted">{icon}</span>
        <span className="min-w-0 grow">{head}</span>
        {end}
        <Sign size={14} aria-hidden className="shrink-0 text-muted" />
      </button>
      {open ? <div className="mt-1 mb-1 pl-6">{children}</div> : null}
    </div>
  );
}
