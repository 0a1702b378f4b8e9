// cli/terminal/show-event.ts: the events of a task as lines that people read, one after the other.
// Invariant: every word of the agent's goes through the sanitiser; colour carries no meaning that the words do not have.
import type { Action } from '../../protocol/agent-event.ts';
import { createSanitizer, visible } from '../../lib/sanitize.ts';
import { count, formatDuration } from '../../lib/units.ts';
import type { EventLine } from '../../store/events.ts';
import type { Paint } from './colour.ts';
import { cut } from './format.ts';

export interface EventStyle {
  readonly paint: Paint;
  /** Cells of a line. */
  readonly width: number;
  /** What commands printed, thoughts, and how the sandbox was made ready. */
  readonly verbose: boolean;
}

type Show = (event: EventLine, style: EventStyle) => readonly string[];

/** Lines with their ends; none for what nobody needs to see. */
export function showEvent(event: EventLine, style: EventStyle): string {
  const lines = SHOW[event.type]?.(event, style) ?? (style.verbose ? [dim(style, `${event.type}`)] : []);
  return lines.map((line) => `${line}\n`).join('');
}

const text = (value: unknown): string => (typeof value === 'string' ? value : '');
const number = (value: unknown): number => (typeof value === 'number' ? value : 0);
const dim = ({ paint }: EventStyle, line: string): string => paint('dim', line);

const SHOW: Readonly<Record<string, Show>> = {
  'run.queued': (e, s) => [dim(s, `queued${number(e['run']) > 1 ? ` (run ${number(e['run'])})` : ''}`)],
  'run.waiting': (e, s) => [dim(s, `waits: ${visible(text(e['why']))}`)],
  'run.moved': () => [],
  'run.prepared': (e, s) => [dim(s, visible(text(e['text'])))],
  'run.printed': (e, s) => [dim(s, `  | ${cut(text(e['text']), s.width - 4)}`)],
  'run.noticed': (e, s) => [s.paint('yellow', visible(text(e['text'])))],
  'run.started': (e, s) => {
    const version = text(e['version']);
    const who = `${visible(text(e['title']))}${version === '' ? '' : ` ${visible(version)}`}`;
    const prompt = text(e['prompt']);
    return [
      dim(s, `${who} started${s.verbose ? `: ${visible(text(e['sandbox']))}` : ''}`),
      ...(prompt === '' ? [] : paragraph(prompt, '> ')),
    ];
  },
  'run.imported': (e, s) => {
    const dropped = number(e['dropped']);
    const lost = dropped === 0 ? '' : `; ${count(dropped, 'event')} of it could not be read`;
    return [dim(s, `imported from ${visible(text(e['file']))}, where it was ${visible(text(e['from']))}${lost}`)];
  },
  'turn.ended': () => [],
  'message.sent': (e) => paragraph(text(e['text']), '> '),
  'agent.started': (e, s) =>
    s.verbose ? [dim(s, `session ${visible(text(e['session']))}, model ${visible(text(e['model']))}`)] : [],
  'agent.said': (e) => paragraph(text(e['text']), ''),
  'agent.thought': (e, s) => (s.verbose ? paragraph(text(e['text']), '  ').map((line) => dim(s, line)) : []),
  'agent.waited': (e, s) => [s.paint('yellow', `  waits for its model: ${cut(text(e['why']), s.width - 24)}`)],
  'agent.asked': (e, s) => [s.paint('yellow', `  asks: ${visible(text(e['question']))}`)],
  'agent.used': () => [],
  'agent.printed': (e, s) => [dim(s, `  | ${cut(text(e['text']), s.width - 4)}`)],
  'agent.finished': () => [],
  'tool.started': (e, s) => [
    s.paint('cyan', `  ${describeAction(e['action'] as Action, text(e['tool']), s.width - 2)}`),
  ],
  'tool.finished': toolFinished,
  'hook.decided': (e, s) =>
    e['verdict'] === 'allowed'
      ? []
      : [s.paint('red', `    ${visible(text(e['mode']))}: ${cut(text(e['reason']), s.width)}`)],
  'network.denied': (e, s) => [
    s.paint(
      'red',
      `  network: ${visible(text(e['host']))}:${number(e['port'])} refused, ${cut(text(e['reason']), s.width)}`,
    ),
  ],
  'network.asked': (e, s) => [
    s.paint(
      'yellow',
      `  network: ${visible(text(e['host']))}:${number(e['port'])} is asked for: ags allow ${visible(text(e['host']))}`,
    ),
  ],
  'network.limit-reached': (e, s) => [s.paint('red', `  network: ${visible(text(e['reason']))}`)],
  'service.seeding': (e, s) => [dim(s, `service ${visible(text(e['service']))}: filled for the first time`)],
  'service.healthy': (e, s) => (s.verbose ? [dim(s, `service ${visible(text(e['service']))}: healthy`)] : []),
  'service.failed': (e, s) => [
    s.paint('red', `  ${visible(text(e['why']))}`),
    ...(Array.isArray(e['lines']) ? e['lines'] : [])
      .slice(s.verbose ? -100 : -8)
      .map((line) => dim(s, `    | ${cut(text(line), s.width - 6)}`)),
  ],
  'changes.captured': (e, s) => [
    dim(
      s,
      `${count(number(e['files']), 'file')}, +${number(e['added'])} -${number(e['removed'])}, on branch ${visible(text(e['branch']))}`,
    ),
  ],
  'run.ended': (e, s) => [
    s.paint(
      e['state'] === 'failed' ? 'red' : 'green',
      `${ENDS[text(e['state'])] ?? visible(text(e['state']))}${text(e['reason']) === '' ? '' : `: ${visible(text(e['reason']))}`}`,
    ),
  ],
  'events.lost': (e, s) => [
    s.paint(
      'yellow',
      `${number(e['count'])} events were left out: the log is full. All the agent's words: ags logs --raw`,
    ),
  ],
};

const ENDS: Readonly<Record<string, string>> = {
  ready: 'done',
  'no-changes': 'done, nothing was changed',
  failed: 'failed',
  stopped: 'stopped',
};

function toolFinished(e: EventLine, s: EventStyle): readonly string[] {
  const outcome = text(e['outcome']);
  const ms = number(e['durationMs']);
  const took = ms >= 1000 ? ` after ${formatDuration(Math.round(ms / 1000))}` : '';
  const code = e['exitCode'];
  const lines = text(e['output'])
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

/** What the agent says, as it says it: its own lines, made harmless. */
function paragraph(words: string, prefix: string): string[] {
  const clean = createSanitizer({ maxLine: 4096 });
  const shown = clean.push(words) + clean.end();
  return shown
    .trimEnd()
    .split('\n')
    .map((line) => `${prefix}${line}`);
}
