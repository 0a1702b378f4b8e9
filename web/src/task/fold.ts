// web/src/task/fold.ts: folds events into timeline items: a tool and its result are one item, consecutive reads are one line,
// preparation steps are one section.
// Invariant: a changed item is a new object, so that only it redraws. Texts are stored as received; components sanitize them.
import type { Action } from '../../../src/protocol/agent-event.ts';
import { readEvent, type EventReaders, type SeenEvent } from '../../../src/protocol/event.ts';
import { cleanLine } from '../text/clean.ts';
import { plural } from '../text/format.ts';
import type { Item, ItemOf, Tool } from './item.ts';

export interface Fold {
  readonly items: readonly Item[];
  push(event: SeenEvent): void;
}

/** An item without its position, which add() sets. */
type Fresh = Item extends infer One ? (One extends Item ? Omit<One, 'key' | 'atMs' | 'turn'> : never) : never;

const text = (value: unknown): string => (typeof value === 'string' ? value : '');
const branchName = (ref: string): string => cleanLine(text(ref).replace('refs/heads/', ''), 60);
const number = (value: unknown): number => (typeof value === 'number' ? value : 0);

/** The timeline does not show it. */
const hidden = (): void => undefined;

export function createFold(): Fold {
  const items: Item[] = [];
  const running = new Map<string, number>();
  const hosts = new Map<string, number>();
  let turn = 1;
  let preparing: number | null = null;
  let question: number | null = null;

  function add(event: SeenEvent, item: Fresh): number {
    const before = items.at(-1)?.key ?? 0;
    // One event may create two items; each needs its own key.
    const key = before >= event.seq ? before + 0.25 : event.seq;
    items.push({ ...item, key, atMs: Date.parse(event.at), turn });
    return items.length - 1;
  }
  function change<Kind extends Item['kind']>(
    at: number,
    kind: Kind,
    to: (item: ItemOf<Kind>) => Partial<ItemOf<Kind>>,
  ): void {
    const item = items[at];
    if (item?.kind === kind) items[at] = { ...item, ...to(item as ItemOf<Kind>) };
  }
  function prepare(event: SeenEvent, step: string | null, line: string | null): void {
    preparing ??= add(event, { kind: 'prepare', steps: [], printed: [], endMs: null, failed: false });
    change(preparing, 'prepare', ({ steps, printed }) => ({
      steps: step === null ? steps : withStep(steps, step, Date.parse(event.at)),
      printed: line === null ? printed : [...printed, line].slice(-500),
    }));
  }
  function endPreparing(event: SeenEvent, failed: boolean): void {
    if (preparing !== null) change(preparing, 'prepare', () => ({ endMs: Date.parse(event.at), failed }));
    preparing = null;
  }
  function answered(): void {
    if (question !== null) change(question, 'question', () => ({ open: false }));
    question = null;
  }

  function startTool(event: Extract<SeenEvent, { type: 'tool.started' }>): void {
    const { action } = event;
    const tool: Tool = {
      id: text(event.id),
      tool: text(event.tool),
      action,
      atMs: Date.parse(event.at),
      end: null,
    };
    const kind = KINDS[action.kind];
    const before = items.at(-1);
    if (kind === 'explore' && before?.kind === 'explore') {
      change(items.length - 1, 'explore', ({ tools }) => ({ tools: [...tools, tool] }));
      running.set(tool.id, items.length - 1);
    } else running.set(tool.id, add(event, kind === 'explore' ? { kind, tools: [tool] } : { kind, tool }));
  }
  function endTool(event: Extract<SeenEvent, { type: 'tool.finished' }>): void {
    const id = text(event.id);
    const at = running.get(id);
    if (at === undefined) return;
    running.delete(id);
    const ended = (tool: Tool): Tool => ({
      ...tool,
      end: {
        outcome: event.outcome,
        exitCode: typeof event.exitCode === 'number' ? event.exitCode : null,
        output: text(event.output),
        tookMs: typeof event.durationMs === 'number' ? event.durationMs : Date.parse(event.at) - tool.atMs,
      },
    });
    const item = items[at];
    if (item?.kind === 'explore')
      items[at] = { ...item, tools: item.tools.map((tool) => (tool.id === id ? ended(tool) : tool)) };
    else if (item?.kind === 'command' || item?.kind === 'edit' || item?.kind === 'other')
      items[at] = { ...item, tool: ended(item.tool) };
  }
  function network(event: Extract<SeenEvent, { type: 'network.denied' | 'network.asked' }>, asked: boolean): void {
    const [host, port] = [text(event.host), number(event.port)];
    const key = `${host}:${port}`;
    const reason = event.type === 'network.denied' ? event.reason : '';
    const program = event.program ?? null;
    const known = hosts.get(key);
    if (known === undefined)
      hosts.set(key, add(event, { kind: 'network', host, port, tries: 1, asked, reason, program }));
    else
      change(known, 'network', (old) => ({
        // Denying an asked request is not another attempt.
        tries: old.asked && !asked ? old.tries : old.tries + 1,
        asked,
        reason: reason === '' ? old.reason : reason,
        program: program ?? old.program,
      }));
  }

  const READ: EventReaders<void, SeenEvent> = {
    'run.queued': (e) => {
      if (text(e.goal) !== '') add(e, { kind: 'goal', text: text(e.goal) });
      prepare(e, 'Queued', null);
    },
    'run.moved': hidden,
    'run.waiting': (e) => prepare(e, `${WAITS}${text(e.why)}`, null),
    'run.prepared': (e) => prepare(e, text(e.text), null),
    'run.printed': (e) => prepare(e, null, text(e.text)),
    'run.noticed': (e) => void add(e, { kind: 'note', tone: 'warn', text: text(e.text) }),
    'run.started': (e) => {
      endPreparing(e, false);
      turn = number(e.turn) || turn;
      hosts.clear();
      const version = text(e.version);
      add(e, {
        kind: 'started',
        who: `${text(e.title)}${version === '' ? '' : ` ${version}`}`,
        sandbox: text(e.sandbox),
      });
      const prompt = text(e.prompt);
      const said = items.some((item) => item.kind === 'message' && item.text === prompt);
      if (prompt !== '' && !said) add(e, { kind: 'message', text: prompt });
    },
    'run.imported': hidden,
    'turn.ended': hidden,
    'message.sent': (e) => {
      answered();
      add(e, { kind: 'message', text: text(e.text) });
    },
    'agent.started': hidden,
    'agent.used': hidden,
    'model.answered': hidden,
    'model.failed': (e) => void add(e, { kind: 'note', tone: 'warn', text: text(e.why) }),
    'agent.finished': hidden,
    'agent.said': (e) => void add(e, { kind: 'said', text: text(e.text) }),
    'agent.thought': (e) => void add(e, { kind: 'thought', text: text(e.text) }),
    'agent.waited': (e) => void add(e, { kind: 'note', tone: 'warn', text: `Waiting for the model: ${text(e.why)}` }),
    'agent.asked': (e) => {
      answered();
      question = add(e, { kind: 'question', question: text(e.question), choices: e.choices ?? [], open: true });
    },
    'agent.printed': (e) => {
      const last = items.at(-1);
      if (last?.kind === 'printed')
        change(items.length - 1, 'printed', ({ lines }) => ({ lines: [...lines, text(e.text)].slice(-1000) }));
      else add(e, { kind: 'printed', lines: [text(e.text)] });
    },
    'tool.started': startTool,
    'tool.finished': endTool,
    'hook.decided': (e) => {
      if (e.verdict === 'allowed') return;
      add(e, {
        kind: 'hook',
        hook: text(e.hook),
        point: text(e.point),
        tool: text(e.tool),
        reason: text(e.reason),
        broken: e.verdict === 'failed',
      });
    },
    'network.denied': (e) => network(e, false),
    'network.asked': (e) => network(e, true),
    'network.limit-reached': (e) => void add(e, { kind: 'note', tone: 'bad', text: `Network: ${text(e.reason)}` }),
    'service.seeding': (e) => {
      // Services start in parallel with the agent, so seeding can begin after preparation has ended.
      const words = `Service ${text(e.service)}: loading seed data`;
      if (preparing === null) add(e, { kind: 'note', tone: 'plain', text: words });
      else prepare(e, words, null);
    },
    'service.healthy': hidden,
    'service.failed': (e) => void add(e, { kind: 'note', tone: 'bad', text: text(e.why) }),
    'merge.done': (e) => {
      const all = e.of === undefined || e.files === e.of;
      const files =
        e.files === undefined
          ? ''
          : `${all ? plural(e.files, 'file') : `${e.files} of ${plural(number(e.of), 'file')}`} `;
      add(e, {
        kind: 'note',
        tone: 'plain',
        text: `${files}merged into ${branchName(e.ref)} as ${text(e.commit).slice(0, 7)}`,
      });
    },
    'merge.undone': (e) =>
      void add(e, {
        kind: 'note',
        tone: 'plain',
        text: `Merge undone: ${branchName(e.ref)} is at ${text(e.commit).slice(0, 7)}`,
      }),
    'review.taken': hidden,
    'review.dropped': hidden,
    'changes.captured': (e) =>
      void add(e, {
        kind: 'captured',
        files: number(e.files),
        added: number(e.added),
        removed: number(e.removed),
        branch: text(e.branch),
      }),
    'run.ended': (e) => {
      endPreparing(e, e.state === 'failed');
      answered();
      add(e, { kind: 'ended', state: text(e.state), reason: text(e.reason) });
    },
    'events.lost': (e) =>
      void add(e, { kind: 'note', tone: 'warn', text: `${number(e.count)} events were dropped: the log is full.` }),
  };
  return { items, push: (event) => readEvent(READ, event) };
}

type Steps = ItemOf<'prepare'>['steps'];

/** Keeps only the last of consecutive reasons for waiting. */
function withStep(steps: Steps, text: string, atMs: number): Steps {
  const last = steps.at(-1);
  const waits = text.startsWith(WAITS) && last?.text.startsWith(WAITS) === true;
  return waits ? [...steps.slice(0, -1), { ...last, text }] : [...steps, { text, atMs }];
}

const WAITS = 'Waiting: ';

const KINDS: Readonly<Record<Action['kind'], 'explore' | 'command' | 'edit' | 'other'>> = {
  read: 'explore',
  search: 'explore',
  command: 'command',
  write: 'edit',
  fetch: 'other',
  other: 'other',
};
