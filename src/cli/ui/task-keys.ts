// cli/ui/task-keys.ts: what the keys do with one task: open a view, hand the terminal over, or ask before a change.
// Invariant: a view or a question is there at once, or the screen is busy until it is, so that the next key never meets another one.
import { lastEvents } from '../../store/follow-events.ts';
import type { Context } from '../verb.ts';
import { type Line, span } from './cells.ts';
import { askChoice, askText, type Choice, type Dialog } from './dialog.ts';
import type { FeedRow } from './feed.ts';
import { handOver } from './hand-over.ts';
import type { Screen } from './screen.ts';
import { createDiffView } from './view-diff.ts';
import { createLogView, type LogView } from './view-log.ts';
import type { View } from './view.ts';

/** What a key may use of the whole. */
export interface Stage {
  readonly ctx: Context;
  readonly screen: Screen;
  row(id: string): FeedRow | null;
  show(view: View): void;
  showLog(view: LogView): void;
  close(view: View): void;
  /** null closes the question. */
  ask(dialog: Dialog | null): void;
  /** Runs one change and says how it ended; `doing` null: in the background. */
  attempt(doing: string | null, id: string | null, act: () => Promise<string | void>): Promise<void>;
  redraw(): void;
}

/** Returns false for a key that means nothing here. */
export function actOn(stage: Stage, row: FeedRow, key: string): boolean {
  const act = KEYS[key];
  if (act === undefined) return false;
  void act(stage, row);
  return true;
}

const KEYS: Readonly<Record<string, (stage: Stage, row: FeedRow) => Promise<void> | void>> = {
  enter: showLog,
  l: showLog,
  d: showDiff,
  m: merge,
  r: write,
  n: network,
  s: stop,
  c: goOn,
  t: attach,
  v: review,
};

function attach(stage: Stage, { id, row, interactive }: FeedRow): Promise<void> | void {
  if (!row.live) return tell(stage, `Attach to ${id}`, `${id} is not running.`);
  if (!interactive)
    return tell(stage, `Attach to ${id}`, `${id} has no terminal: it was started without -i. Send it a message: r`);
  return leaveTo(stage, id, ['attach', id], false);
}

function review(stage: Stage, { id, row }: FeedRow): Promise<void> | void {
  if (row.live) return tell(stage, `Review ${id}`, `${id} is still running. What it has changed so far: d`);
  return leaveTo(stage, id, ['review', id], true);
}

function showLog(stage: Stage, { id }: FeedRow): void {
  stage.showLog(createLogView(id, () => stage.row(id)));
}

function showDiff(stage: Stage, { id }: FeedRow): void {
  const { view, loaded } = createDiffView(stage.ctx, id, stage.redraw);
  stage.show(view);
  void stage.attempt(null, id, () =>
    loaded.catch((error: unknown) => {
      stage.close(view);
      throw error;
    }),
  );
}

async function leaveTo(stage: Stage, id: string, args: readonly string[], stay: boolean): Promise<void> {
  await stage.attempt(null, id, () => handOver(stage.ctx, stage.screen, args, { stay }));
}

/** Plans the merge first; keys that come before the question is there press nothing in it. */
async function merge(stage: Stage, { id, row }: FeedRow): Promise<void> {
  if (row.goal === null) return tell(stage, `Merge ${id}`, `${id} is a command: it has no branch. Review its files: v`);
  if (row.live) return tell(stage, `Merge ${id}`, `${id} is still running. Merge it when it has ended, or stop it: s`);
  await stage.attempt(`Looking at what ${id} would merge`, id, async () => {
    const { proposeMerge } = await import('./actions.ts');
    const { title, text, act, needsChecks } = await proposeMerge(stage.ctx, id);
    const choices: Choice[] = [];
    if (act !== null) choices.push(choice(stage, 'Merge', `Merging ${id}`, id, act));
    if (needsChecks) choices.push({ label: 'Run the checks (ags check)', act: () => go(stage, id, ['check', id]) });
    if (act !== null || text.length > 0)
      choices.push({
        label: 'Choose files and parts (ags merge --patch)',
        act: () => go(stage, id, ['merge', id, '--patch']),
      });
    stage.ask(askChoice({ title, text, cancel: cancel(stage), choices }));
  });
}

function write(stage: Stage, { id, row, needs, interactive }: FeedRow): void {
  if (row.goal === null) return tell(stage, id, `${id} is a command: it reads no messages.`);
  if (interactive) return tell(stage, id, `${id} has a terminal of its own. Attach to it: t`);
  const { suggestions, text } = needs === 'answer' ? questionOf(stage, id) : { suggestions: [], text: [] };
  const ended = row.live ? [] : [[span(`${id} has ended; a message makes it go on.`, 'dim')]];
  stage.ask(
    askText({
      title: needs === 'answer' ? `Answer ${id}` : `Message to ${id}`,
      text: [...text, ...ended],
      suggestions,
      done(words) {
        stage.ask(null);
        void stage.attempt(`Sending to ${id}`, id, async () => {
          const { send } = await import('./actions.ts');
          return send(stage.ctx, id, words);
        });
      },
      cancel: () => stage.ask(null),
    }),
  );
}

/** The last question of the agent, and the answers that it offers. */
function questionOf(stage: Stage, id: string): { text: Line[]; suggestions: readonly string[] } {
  const events = lastEvents(stage.row(id)?.paths.events ?? '');
  const asked = events.findLast((event) => event.type === 'agent.asked');
  if (asked?.type !== 'agent.asked') return { text: [], suggestions: [] };
  const suggestions = asked.choices ?? [];
  return {
    text: [
      ...asked.question.split('\n').map((line): Line => [span(line)]),
      ...suggestions.map((one): Line => [span(`  - ${one}`, 'cyan')]),
    ],
    suggestions,
  };
}

/** Hosts that wait for an answer first, then hosts that were refused. */
async function network(stage: Stage, { id, row, refusedHosts }: FeedRow): Promise<void> {
  if (!row.live)
    return tell(
      stage,
      `Network of ${id}`,
      `${id} is not running: rules are for running sandboxes. ags allow --project <host>`,
    );
  await stage.attempt(`Asking ${id}`, null, async () => {
    const { waitingAsks } = await import('./actions.ts');
    const asks = await waitingAsks(stage.ctx, id);
    const waiting = asks.map(({ host, port, program }) => ({
      host,
      port,
      label: `${host}:${port}  waits${program === undefined ? '' : `, asked by ${program}`}`,
    }));
    const refused = refusedHosts.flatMap((name) => {
      const [, host = '', port = ''] = /^(.*):(\d+)$/.exec(name) ?? [];
      return waiting.some((one) => one.host === host && String(one.port) === port)
        ? []
        : [{ host, port: Number(port), label: `${name}  was refused` }];
    });
    const all = [...waiting, ...refused].slice(0, MOST_HOSTS);
    if (all.length === 0)
      return tell(stage, `Network of ${id}`, 'No connection waits for an answer, and none was refused.');
    stage.ask(
      askChoice({
        title: `Network of ${id}`,
        text: [[span('Which host?')]],
        cancel: cancel(stage),
        choices: all.map((one) => ({ label: one.label, act: () => answer(stage, id, one) })),
      }),
    );
  });
}

const MOST_HOSTS = 10;

function answer(stage: Stage, id: string, one: { host: string; port: number }): void {
  const name = `${one.host}:${one.port}`;
  const of = (label: string, how: 'allow' | 'allow-project' | 'deny'): Choice =>
    choice(stage, label, `Changing the rules of ${id}`, id, async () => {
      const { answerHost } = await import('./actions.ts');
      return answerHost(stage.ctx, id, one, how);
    });
  stage.ask(
    askChoice({
      title: `${name} in ${id}`,
      text: [],
      cancel: cancel(stage),
      choices: [
        of('Allow in this task, until it ends', 'allow'),
        of('Allow for this project, in ags.yaml', 'allow-project'),
        of('Deny in this task, until it ends', 'deny'),
      ],
    }),
  );
}

function stop(stage: Stage, { id, row }: FeedRow): void {
  if (!row.live) return tell(stage, `Stop ${id}`, `${id} is not running.`);
  stage.ask(
    askChoice({
      title: `Stop ${id}`,
      text: [[span('Its work so far is kept on its branch; c continues it later.')]],
      cancel: cancel(stage),
      choices: [
        choice(stage, 'Stop', `Stopping ${id}`, id, async () => (await import('./actions.ts')).stop(stage.ctx, id)),
      ],
    }),
  );
}

function goOn(stage: Stage, { id, row }: FeedRow): void {
  if (row.goal === null) return tell(stage, id, `${id} is a command: it cannot be continued.`);
  if (row.live) return tell(stage, `Continue ${id}`, `${id} is running.`);
  stage.ask(
    askChoice({
      title: `Continue ${id}`,
      text: [[span('The agent goes on where it was, with the same conversation and files.')]],
      cancel: cancel(stage),
      choices: [
        choice(stage, 'Continue', `Starting ${id}`, id, async () => (await import('./actions.ts')).goOn(stage.ctx, id)),
      ],
    }),
  );
}

function cancel(stage: Stage): Choice {
  return { label: 'Cancel', act: () => stage.ask(null) };
}

function choice(stage: Stage, label: string, doing: string, id: string, act: () => Promise<string>): Choice {
  return {
    label,
    act() {
      stage.ask(null);
      void stage.attempt(doing, id, act);
    },
  };
}

function go(stage: Stage, id: string, args: readonly string[]): void {
  stage.ask(null);
  void leaveTo(stage, id, args, true);
}

function tell(stage: Stage, title: string, words: string): void {
  stage.ask(
    askChoice({ title, text: [[span(words)]], cancel: { label: 'Close', act: () => stage.ask(null) }, choices: [] }),
  );
}
