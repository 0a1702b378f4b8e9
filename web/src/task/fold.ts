// web/src/task/fold.ts: from events, one after the other, to the items of a timeline: a tool and its end are one item, reads in a row
// are one line, preparations are one section.
// Invariant: an item that changes becomes a new object, so that only it is drawn again. Texts stay as they came: items clean them.
import type { Action } from '../../../src/protocol/agent-event.ts';
import type { ApiEvent } from '../../../src/protocol/api/api.ts';
import type { Item, ItemOf, Tool } from './item.ts';

export interface Fold {
  readonly items: readonly Item[];
  push(event: ApiEvent): void;
}

/** Without the place, which every item gets in the same way. */
type Fresh = Item extends infer One ? (One extends Item ? Omit<One, 'key' | 'atMs' | 'turn'> : never) : never;

const text = (value: unknown): string => (typeof value === 'string' ? value : '');
const number = (value: unknown): number => (typeof value === 'number' ? value : 0);

export function createFold(): Fold {
  const items: Item[] = [];
  const running = new Map<string, number>();
  const hosts = new Map<string, number>();
  let turn = 1;
  let preparing: number | null = null;
  let question: number | null = null;

  function add(event: ApiEvent, item: Fresh): number {
    const before = items.at(-1)?.key ?? 0;
    // One event may make two items.
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
  function prepare(event: ApiEvent, step: string | null, line: string | null): void {
    preparing ??= add(event, { kind: 'prepare', steps: [], printed: [], endMs: null, failed: false });
    change(preparing, 'prepare', ({ steps, printed }) => ({
      steps: step === null ? steps : withStep(steps, step, Date.parse(event.at)),
      printed: line === null ? printed : [...printed, line].slice(-500),
    }));
  }
  function endPreparing(event: ApiEvent, failed: boolean): void {
    if (preparing !== null) change(preparing, 'prepare', () => ({ endMs: Date.parse(event.at), failed }));
    preparing = null;
  }
  function answered(): void {
    if (question !== null) change(question, 'question', () => ({ open: false }));
    question = null;
  }

  function startTool(event: ApiEvent): void {
    const action = event['action'] as Action;
    const tool: Tool = {
      id: text(event['id']),
      tool: text(event['tool']),
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
  function endTool(event: ApiEvent): void {
    const id = text(event['id']);
    const at = running.get(id);
    if (at === undefined) return;
    running.delete(id);
    const ended = (tool: Tool): Tool => ({
      ...tool,
      end: {
        outcome: event['outcome'] as 'done' | 'failed' | 'refused',
        exitCode: typeof event['exitCode'] === 'number' ? event['exitCode'] : null,
        output: text(event['output']),
        tookMs: typeof event['durationMs'] === 'number' ? event['durationMs'] : Date.parse(event.at) - tool.atMs,
      },
    });
    const item = items[at];
    if (item?.kind === 'explore')
      items[at] = { ...item, tools: item.tools.map((tool) => (tool.id === id ? ended(tool) : tool)) };
    else if (item?.kind === 'command' || item?.kind === 'edit' || item?.kind === 'other')
      items[at] = { ...item, tool: ended(item.tool) };
  }
  function network(event: ApiEvent, asked: boolean): void {
    const [host, port] = [text(event['host']), number(event['port'])];
    const key = `${host}:${port}`;
    const reason = text(event['reason']);
    const program = typeof event['program'] === 'string' ? event['program'] : null;
    const known = hosts.get(key);
    if (known === undefined)
      hosts.set(key, add(event, { kind: 'network', host, port, tries: 1, asked, reason, program }));
    else
      change(known, 'network', (old) => ({
        // The refusal of what was asked about is no further try.
        tries: old.asked && !asked ? old.tries : old.tries + 1,
        asked,
        reason: reason === '' ? old.reason : reason,
        program: program ?? old.program,
      }));
  }

  const READ: Readonly<Record<string, (event: ApiEvent) => void>> = {
    'run.queued': (e) => {
      if (text(e['goal']) !== '') add(e, { kind: 'goal', text: text(e['goal']) });
      prepare(e, 'Queued', null);
    },
    'run.waiting': (e) => prepare(e, `${WAITS}${text(e['why'])}`, null),
    'run.prepared': (e) => prepare(e, text(e['text']), null),
    'run.printed': (e) => prepare(e, null, text(e['text'])),
    'run.noticed': (e) => void add(e, { kind: 'note', tone: 'warn', text: text(e['text']) }),
    'run.started': (e) => {
      endPreparing(e, false);
      turn = number(e['turn']) || turn;
      hosts.clear();
      const version = text(e['version']);
      add(e, {
        kind: 'started',
        who: `${text(e['title'])}${version === '' ? '' : ` ${version}`}`,
        sandbox: text(e['sandbox']),
      });
      const prompt = text(e['prompt']);
      const said = items.some((item) => item.kind === 'message' && item.text === prompt);
      if (prompt !== '' && !said) add(e, { kind: 'message', text: prompt });
    },
    'message.sent': (e) => {
      answered();
      add(e, { kind: 'message', text: text(e['text']) });
    },
    'agent.said': (e) => void add(e, { kind: 'said', text: text(e['text']) }),
    'agent.thought': (e) => void add(e, { kind: 'thought', text: text(e['text']) }),
    'agent.waited': (e) => void add(e, { kind: 'note', tone: 'warn', text: `Waits for its model: ${text(e['why'])}` }),
    'agent.asked': (e) => {
      answered();
      const choices = Array.isArray(e['choices']) ? e['choices'].filter((one) => typeof one === 'string') : [];
      question = add(e, { kind: 'question', question: text(e['question']), choices, open: true });
    },
    'agent.printed': (e) => {
      const last = items.at(-1);
      if (last?.kind === 'printed')
        change(items.length - 1, 'printed', ({ lines }) => ({ lines: [...lines, text(e['text'])].slice(-1000) }));
      else add(e, { kind: 'printed', lines: [text(e['text'])] });
    },
    'tool.started': startTool,
    'tool.finished': endTool,
    'hook.decided': (e) => {
      if (e['verdict'] === 'allowed') return;
      add(e, {
        kind: 'hook',
        hook: text(e['hook']),
        point: text(e['point']),
        tool: text(e['tool']),
        reason: text(e['reason']),
        broken: e['verdict'] === 'failed',
      });
    },
    'network.denied': (e) => network(e, false),
    'network.asked': (e) => network(e, true),
    'network.limit-reached': (e) => void add(e, { kind: 'note', tone: 'bad', text: `Network: ${text(e['reason'])}` }),
    'service.seeding': (e) => {
      // Services start beside the agent: when it is at work already, this is no preparation of it.
      const words = `Service ${text(e['service'])}: filled for the first time`;
      if (preparing === null) add(e, { kind: 'note', tone: 'plain', text: words });
      else prepare(e, words, null);
    },
    'service.failed': (e) => void add(e, { kind: 'note', tone: 'bad', text: text(e['why']) }),
    'changes.captured': (e) =>
      void add(e, {
        kind: 'captured',
        files: number(e['files']),
        added: number(e['added']),
        removed: number(e['removed']),
        branch: text(e['branch']),
      }),
    'run.ended': (e) => {
      endPreparing(e, e['state'] === 'failed');
      answered();
      add(e, { kind: 'ended', state: text(e['state']), reason: text(e['reason']) });
    },
    'events.lost': (e) =>
      void add(e, { kind: 'note', tone: 'warn', text: `${number(e['count'])} events were left out: the log is full.` }),
  };
  return { items, push: (event) => (Object.hasOwn(READ, event.type) ? READ[event.type]?.(event) : undefined) };
}

type Steps = ItemOf<'prepare'>['steps'];

/** Of several reasons to wait, one after the other, the last one counts. */
function withStep(steps: Steps, text: string, atMs: number): Steps {
  const last = steps.at(-1);
  const waits = text.startsWith(WAITS) && last?.text.startsWith(WAITS) === true;
  return waits ? [...steps.slice(0, -1), { ...last, text }] : [...steps, { text, atMs }];
}

const WAITS = 'Waits: ';

const KINDS: Readonly<Record<Action['kind'], 'explore' | 'command' | 'edit' | 'other'>> = {
  read: 'explore',
  search: 'explore',
  command: 'command',
  write: 'edit',
  fetch: 'other',
  other: 'other',
};
