// web/src/task/items.tsx: draws one timeline item.
import {
  Brain,
  CircleCheck,
  CircleX,
  GitCommitHorizontal,
  Hammer,
  Info,
  MessageSquare,
  OctagonX,
  Play,
  ScrollText,
  Target,
} from 'lucide-react';
import { memo, useState } from 'react';
import type { ReactNode } from 'react';
import type { ApiTaskDetail } from '../../../src/protocol/api/api.ts';
import { clean, cleanLine } from '../text/clean.ts';
import { clock, plural, took } from '../text/format.ts';
import { AgentText } from '../text/markdown.tsx';
import { Button } from '../ui/button.tsx';
import { DiffStat } from '../ui/figures.tsx';
import { isShownState } from '../../../src/protocol/run-state.ts';
import { stateWord } from '../ui/state-badge.tsx';
import { AskCard, retryMessage } from './ask-card.tsx';
import type { Item, ItemOf } from './item.ts';
import { Output } from './output.tsx';
import { CommandItem, EditItem, ExploreItem, Collapsible, OtherItem } from './tool-items.tsx';

export interface ItemContext {
  readonly task: string;
  readonly live: boolean;
  readonly asks: ApiTaskDetail['asks'];
  readonly send: ((text: string) => void) | null;
}

export const TimelineItem = memo(function TimelineItem({
  item,
  context,
}: {
  item: Item;
  context: ItemContext;
}): ReactNode {
  return (
    <div className="grid grid-cols-[minmax(0,1fr)] gap-x-3 px-4 py-1 sm:grid-cols-[2.75rem_minmax(0,1fr)]">
      <time
        dateTime={new Date(item.atMs).toISOString()}
        className="tabular hidden pt-1 text-right text-xs leading-5 text-muted sm:block"
      >
        {clock(item.atMs)}
      </time>
      <div className="min-w-0">
        <Body item={item} context={context} />
      </div>
    </div>
  );
});

function Body({ item, context }: { item: Item; context: ItemContext }): ReactNode {
  switch (item.kind) {
    case 'goal':
    case 'message':
      return <UserMessage item={item} />;
    case 'prepare':
      return <Prepare item={item} />;
    case 'started':
      return (
        <Line icon={<Play size={16} aria-hidden />} title={cleanLine(item.sandbox)}>
          {cleanLine(item.who)} started{item.turn > 1 ? `, turn ${item.turn}` : ''}
        </Line>
      );
    case 'said':
      return (
        <div className="py-1">
          <AgentText text={item.text} />
        </div>
      );
    case 'thought':
      return <Thought item={item} />;
    case 'explore':
      return <ExploreItem item={item} />;
    case 'command':
      return <CommandItem item={item} />;
    case 'edit':
      return <EditItem item={item} />;
    case 'other':
      return <OtherItem item={item} />;
    case 'question':
      return <Question item={item} context={context} />;
    case 'network':
      return <Network item={item} context={context} />;
    case 'hook':
      return <Hook item={item} />;
    case 'note':
      return (
        <Line
          icon={<Info size={16} aria-hidden />}
          tone={item.tone === 'bad' ? 'text-bad' : item.tone === 'warn' ? 'text-warn' : 'text-muted'}
        >
          {cleanLine(item.text, 600)}
        </Line>
      );
    case 'printed':
      return <Output text={item.lines.join('\n')} few={6} label="Printed by the agent" />;
    case 'captured':
      return (
        <Line icon={<GitCommitHorizontal size={16} aria-hidden />} tone="text-text">
          {plural(item.files, 'file')} <DiffStat added={item.added} removed={item.removed} /> on branch{' '}
          <span className="font-mono text-sm">{cleanLine(item.branch)}</span>
        </Line>
      );
    case 'ended':
      return <Ended item={item} />;
  }
}

function Line({
  icon,
  tone = 'text-muted',
  title,
  children,
}: {
  icon: ReactNode;
  tone?: string;
  title?: string;
  children: ReactNode;
}): ReactNode {
  return (
    <p className={`flex min-h-7 items-start gap-2 py-1 ${tone}`} title={title}>
      <span className="mt-0.5 shrink-0">{icon}</span>
      <span className="min-w-0 wrap-anywhere">{children}</span>
    </p>
  );
}

function UserMessage({ item }: { item: ItemOf<'goal' | 'message'> }): ReactNode {
  const [all, setAll] = useState(false);
  const words = clean(item.text);
  const lines = words.split('\n');
  const long = lines.length > 12;
  const Sign = item.kind === 'goal' ? Target : MessageSquare;
  return (
    <div className="my-1 max-w-[84ch] rounded-lg border border-line bg-panel p-3">
      <p className="mb-1 flex items-center gap-1.5 text-xs font-medium text-muted">
        <Sign size={14} aria-hidden /> {item.kind === 'goal' ? 'Goal' : 'You'}
      </p>
      <p className="whitespace-pre-wrap wrap-anywhere">{(long && !all ? lines.slice(0, 12) : lines).join('\n')}</p>
      {long ? (
        <Button look="quiet" size="small" aria-expanded={all} onClick={() => setAll(!all)} className="mt-1 -ml-2">
          {all ? 'Show less' : `Show ${lines.length - 12} more lines`}
        </Button>
      ) : null}
    </div>
  );
}

function Prepare({ item }: { item: ItemOf<'prepare'> }): ReactNode {
  const [open, setOpen] = useState<boolean | null>(null);
  const shown = open ?? (item.failed || item.endMs === null);
  return (
    <Collapsible
      icon={<Hammer size={16} aria-hidden />}
      open={shown}
      onToggle={() => setOpen(!shown)}
      head={
        <span className={item.failed ? 'text-bad' : 'text-muted'}>
          {item.endMs === null ? 'Preparing the sandbox' : item.failed ? 'Sandbox set-up failed' : 'Sandbox prepared'}
        </span>
      }
      end={
        item.endMs === null ? null : (
          <span className="tabular text-sm text-muted">{took(Math.max(0, item.endMs - item.atMs))}</span>
        )
      }
    >
      <ol>
        {item.steps.map((step, at) => (
          <li key={at} className="flex gap-3 text-sm">
            <span className="min-w-0 grow wrap-anywhere">{cleanLine(step.text)}</span>
            <span className="tabular shrink-0 text-muted">
              {took(Math.max(0, (item.steps[at + 1]?.atMs ?? item.endMs ?? step.atMs) - step.atMs))}
            </span>
          </li>
        ))}
      </ol>
      {item.printed.length === 0 ? null : <Output text={item.printed.join('')} few={20} label="Set-up output" />}
    </Collapsible>
  );
}

function Thought({ item }: { item: ItemOf<'thought'> }): ReactNode {
  const [open, setOpen] = useState(false);
  return (
    <Collapsible
      icon={<Brain size={16} aria-hidden />}
      open={open}
      onToggle={() => setOpen(!open)}
      head={
        <span className="block truncate text-muted italic">
          {cleanLine(item.text.trim().split('\n')[0] ?? '', 160)}
        </span>
      }
    >
      <div className="text-muted">
        <AgentText text={item.text} />
      </div>
    </Collapsible>
  );
}

function Question({ item, context }: { item: ItemOf<'question'>; context: ItemContext }): ReactNode {
  return (
    <div
      role="group"
      aria-label="Question from the agent"
      className={`my-1 max-w-[84ch] rounded-lg border p-3 ${item.open ? 'border-warn bg-warn-bg' : 'border-line'}`}
    >
      <p className={`mb-1 text-xs font-medium ${item.open ? 'text-warn' : 'text-muted'}`}>
        {item.open ? 'The agent asks' : 'The agent asked'}
      </p>
      <AgentText text={item.question} />
      {item.open && context.send !== null ? (
        <div className="mt-2 flex flex-wrap items-center gap-2">
          {item.choices.map((choice) => (
            <Button key={choice} size="small" onClick={() => context.send?.(choice)}>
              {cleanLine(choice, 80)}
            </Button>
          ))}
          <span className="text-sm text-muted">
            {item.choices.length > 0 ? 'or answer in the field below' : 'Answer in the field below.'}
          </span>
        </div>
      ) : null}
    </div>
  );
}

function Network({ item, context }: { item: ItemOf<'network'>; context: ItemContext }): ReactNode {
  const waiting = context.asks.find(({ host, port }) => host === item.host && port === item.port);
  const { send } = context;
  return (
    <div className="my-1">
      <AskCard
        ask={{ ...item, program: item.program ?? waiting?.program ?? null, untilMs: waiting?.untilMs ?? null }}
        task={context.task}
        live={context.live}
        onRetry={send === null ? undefined : (host) => send(retryMessage(host))}
      />
    </div>
  );
}

function Hook({ item }: { item: ItemOf<'hook'> }): ReactNode {
  return (
    <div role="group" aria-label="Refused by a hook" className="my-1 max-w-[84ch] rounded-lg border border-bad p-3">
      <p className="flex items-start gap-2 text-bad">
        <OctagonX size={16} aria-hidden className="mt-0.5 shrink-0" />
        <span className="min-w-0 wrap-anywhere">
          <span className="font-medium">{item.broken ? 'Refused because a hook failed' : 'Refused by a hook'}</span>
          <span className="text-muted">
            {' '}
            {cleanLine(item.hook, 120)} ({cleanLine(item.point, 20)}
            {item.tool === '' ? '' : `, ${cleanLine(item.tool, 60)}`})
          </span>
        </span>
      </p>
      {item.reason === '' ? null : (
        <p className="mt-1 pl-6 text-sm whitespace-pre-wrap wrap-anywhere">
          {clean(withoutPrefix(item.reason, item.hook))}
        </p>
      )}
    </div>
  );
}

/** The card's title already names the hook. */
function withoutPrefix(reason: string, hook: string): string {
  const prefix = `Refused by the hook ${hook}: `;
  return reason.startsWith(prefix) ? reason.slice(prefix.length) : reason;
}

function Ended({ item }: { item: ItemOf<'ended'> }): ReactNode {
  const bad = item.state === 'failed';
  const reason = cleanLine(item.reason, 600);
  const word = isShownState(item.state) ? stateWord(item.state) : 'Ended';
  return (
    <Line
      icon={
        bad ? (
          <CircleX size={16} aria-hidden />
        ) : item.state === 'stopped' ? (
          <ScrollText size={16} aria-hidden />
        ) : (
          <CircleCheck size={16} aria-hidden />
        )
      }
      tone={bad ? 'text-bad' : item.state === 'ready' ? 'text-ok' : 'text-muted'}
    >
      {/* A reason such as "Stopped by you." already contains the word. */}
      {reason.startsWith(`${word} `) ? null : <span className="font-medium">{word}</span>}
      {reason === '' ? '' : reason.startsWith(`${word} `) ? reason : `: ${reason}`}
    </Line>
  );
}
