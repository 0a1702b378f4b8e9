// cli/terminal/show-event.ts: the events of a task as lines of text.
// Invariant: all text from the agent is sanitized; colour carries no meaning that the words do not have.
import type { Action } from '../../protocol/agent-event.ts';
import { createSanitizer, visible } from '../../lib/sanitize.ts';
import { count, formatDuration } from '../../lib/units.ts';
import { flat } from '../../protocol/errors.ts';
import { isShownState, STATE_WORDS } from '../../protocol/run-state.ts';
import { readEvent, type EventLine, type EventReaders } from '../../protocol/event.ts';
import type { Paint } from './colour.ts';
import { cut } from './format.ts';

export interface EventStyle {
  readonly paint: Paint;
  /** Cells of a line. */
  readonly width: number;
  /** Also shows command output, thoughts and sandbox details. */
  readonly verbose: boolean;
}

/** Complete lines; empty for events that need no line. */
export function showEvent(event: EventLine, style: EventStyle): string {
  const lines = readEvent(SHOW, event, style) ?? (style.verbose ? [dim(style, visible(event.type))] : []);
  return lines.map((line) => `${line}\n`).join('');
}

const text = (value: unknown): string => (typeof value === 'string' ? value : '');
/** A sentence of ags, a hook or a service. */
const sentence = (value: unknown): string => visible(flat(text(value)));
const number = (value: unknown): number => (typeof value === 'number' ? value : 0);
const dim = ({ paint }: EventStyle, line: string): string => paint('dim', line);

const SHOW: EventReaders<readonly string[], EventLine, [EventStyle]> = {
  'run.queued': (e, s) => [dim(s, `queued${number(e.run) > 1 ? ` (run ${number(e.run)})` : ''}`)],
  'run.waiting': (e, s) => [dim(s, `waiting: ${sentence(e.why)}`)],
  'run.moved': () => [],
  'run.prepared': (e, s) => [dim(s, sentence(e.text))],
  'run.printed': (e, s) => [dim(s, `  | ${cut(text(e.text), s.width - 4)}`)],
  'run.noticed': (e, s) => [s.paint('yellow', sentence(e.text))],
  'run.started': (e, s) => {
    const version = text(e.version);
    const who = `${visible(text(e.title))}${version === '' ? '' : ` ${visible(version)}`}`;
    const prompt = text(e.prompt);
    return [
      dim(s, `${who} started${s.verbose ? `: ${visible(text(e.sandbox))}` : ''}`),
      ...(prompt === '' ? [] : paragraph(prompt, '> ')),
    ];
  },
  'run.imported': (e, s) => {
    const dropped = number(e.dropped);
    const lost = dropped === 0 ? '' : `; ${count(dropped, 'event')} could not be read`;
    return [dim(s, `imported from ${visible(text(e.file))}, where it was ${visible(text(e.from))}${lost}`)];
  },
  'turn.ended': () => [],
  'message.sent': (e) => paragraph(text(e.text), '> '),
  'agent.started': (e, s) =>
    s.verbose ? [dim(s, `session ${visible(text(e.session))}, model ${visible(text(e.model))}`)] : [],
  'agent.said': (e) => paragraph(text(e.text), ''),
  'agent.thought': (e, s) => (s.verbose ? paragraph(text(e.text), '  ').map((line) => dim(s, line)) : []),
  'agent.waited': (e, s) => [s.paint('yellow', `  waiting for its model: ${cut(flat(text(e.why)), s.width - 24)}`)],
  'agent.asked': (e, s) => [s.paint('yellow', `  asks: ${sentence(e.question)}`)],
  'agent.used': () => [],
  'model.answered': (e, s) => (s.verbose ? [dim(s, `  ${modelWords(e)}`)] : []),
  'model.failed': (e, s) => [s.paint('yellow', `  ${cut(text(e.why), s.width - 2)}`)],
  'agent.printed': (e, s) => [dim(s, `  | ${cut(text(e.text), s.width - 4)}`)],
  'agent.finished': () => [],
  'tool.started': (e, s) => [s.paint('cyan', `  ${describeAction(e.action, text(e.tool), s.width - 2)}`)],
  'tool.finished': toolFinished,
  'hook.decided': (e, s) =>
    e.verdict === 'allowed'
      ? []
      : [s.paint('red', `    ${visible(text(e.mode))}: ${cut(flat(text(e.reason)), s.width)}`)],
  'network.denied': (e, s) => [
    s.paint(
      'red',
      `  network: ${visible(text(e.host))}:${number(e.port)} refused, ${cut(flat(text(e.reason)), s.width)}`,
    ),
  ],
  'network.asked': (e, s) => [
    s.paint(
      'yellow',
      `  network: ${visible(text(e.host))}:${number(e.port)} waits for your answer: ags allow ${visible(text(e.host))}`,
    ),
  ],
  'network.limit-reached': (e, s) => [s.paint('red', `  network: ${sentence(e.reason)}`)],
  'service.seeding': (e, s) => [
    dim(s, `service ${visible(text(e.service))}: loading its seed data for the first time`),
  ],
  'service.healthy': (e, s) => (s.verbose ? [dim(s, `service ${visible(text(e.service))}: healthy`)] : []),
  'service.failed': (e, s) => [
    s.paint('red', `  ${sentence(e.why)}`),
    ...e.lines.slice(s.verbose ? -100 : -8).map((line) => dim(s, `    | ${cut(text(line), s.width - 6)}`)),
  ],
  'changes.captured': (e, s) => [
    dim(
      s,
      `${count(number(e.files), 'file')}, +${number(e.added)} -${number(e.removed)}, on branch ${visible(text(e.branch))}`,
    ),
  ],
  'run.ended': (e, s) => [
    s.paint(
      e.state === 'failed' ? 'red' : 'green',
      `${isShownState(text(e.state)) ? STATE_WORDS[e.state] : visible(text(e.state))}${text(e.reason) === '' ? '' : `: ${sentence(e.reason)}`}`,
    ),
  ],
  'merge.done': (e, s) => {
    const files =
      typeof e.files === 'number' && typeof e.of === 'number' ? `${e.files} of ${count(e.of, 'file')} ` : '';
    return [
      dim(
        s,
        `${files}merged into ${visible(text(e.ref).replace('refs/heads/', ''))} as ${visible(text(e.commit)).slice(0, 7)}`,
      ),
    ];
  },
  'merge.undone': (e, s) => [dim(s, `merge undone on ${visible(text(e.ref).replace('refs/heads/', ''))}`)],
  'review.taken': () => [],
  'review.dropped': () => [],
  'events.lost': (e, s) => [
    s.paint(
      'yellow',
      `${number(e.count)} events were left out: the log is full. Full output of the agent: ags logs --raw`,
    ),
  ],
};

function modelWords(e: Extract<EventLine, { type: 'model.answered' }>): string {
  const cost = typeof e.costMicros === 'number' ? `, $${(e.costMicros / 1e6).toFixed(4)}` : '';
  const about = e.estimated === true ? 'about ' : '';
  return `${visible(text(e.model))}: ${about}${number(e.inputTokens)} tokens in, ${number(e.outputTokens)} out${cost}`;
}

function toolFinished(e: Extract<EventLine, { type: 'tool.finished' }>, s: EventStyle): readonly string[] {
  const outcome = text(e.outcome);
  const ms = number(e.durationMs);
  const took = ms >= 1000 ? ` after ${formatDuration(Math.round(ms / 1000))}` : '';
  const code = e.exitCode;
  const lines = text(e.output)
    .trimEnd()
    .split('\n')
    .filter((line) => line !== '');
  const shown = (most: number): string[] => lines.slice(-most).map((line) => dim(s, `    | ${cut(line, s.width - 6)}`));
  if (outcome === 'done') {
    const end = took === '' ? [] : [dim(s, `    done${took}`)];
    return s.verbose ? [...end, ...shown(100)] : end;
  }
  const what = typeof code === 'number' ? `exit ${code}` : outcome === 'refused' ? 'refused' : 'failed';
  return [s.paint('red', `    ${what}${took}`), ...shown(s.verbose ? 100 : 8)];
}

export function describeAction(action: Action | undefined, tool: string, width: number): string {
  switch (action?.kind) {
    case 'command':
      return `$ ${cut(action.command.split('\n')[0] ?? '', width - 2)}`;
    case 'write':
      return `${action.change === 'delete' ? 'delete' : action.change === 'edit' ? 'edit' : 'write'} ${cut(action.path, width - 7)}`;
    case 'read':
      return `read ${cut(action.path, width - 5)}`;
    case 'search':
      return `search ${cut(action.what, width - 7)}`;
    case 'fetch':
      return `fetch ${cut(action.url, width - 6)}`;
    case 'other':
    case undefined:
      return `${visible(tool)} ${cut(action?.input ?? '', Math.max(10, width - tool.length - 1))}`.trimEnd();
  }
}

/** Text of the agent, line by line, sanitized. */
function paragraph(words: string, prefix: string): string[] {
  const clean = createSanitizer({ maxLine: 4096 });
  const shown = clean.push(words) + clean.end();
  return shown
    .trimEnd()
    .split('\n')
    .map((line) => `${prefix}${line}`);
}
