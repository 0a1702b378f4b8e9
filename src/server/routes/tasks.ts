// server/routes/tasks.ts: tasks: the list, one of them, and what can be done with it.
import {
  ApiEvents,
  ApiTaskDetail,
  ApiTasks,
  ForkTask,
  Removed,
  RemoveTask,
  SendMessage,
  Sent,
  Started,
  StartTasks,
  Stopped,
  StopTask,
  Withdrawn,
} from '../../protocol/api/api.ts';
import { readEventPage } from '../../store/event-pages.ts';
import { taskDefaults } from '../../agent-setup/about.ts';
import { findEntry } from '../../queries/find-task.ts';
import { forkTask } from '../../agent-run/fork.ts';
import { removeEntry } from '../../housekeeping/remove.ts';
import { searchTasks } from '../../queries/search.ts';
import { startTasks } from '../../agent-run/start.ts';
import { continueTask, restartTask, sendMessage, stopTask, withdraw } from '../../agent-run/control.ts';
import { apiEvent } from '../live/live.ts';
import { Refusal } from './refusal.ts';
import { route, type Call, type Desk, type Route } from './route.ts';
import { taskDetail } from '../live/task-detail.ts';

const idOf = ({ ids }: Pick<Call<unknown>, 'ids'>): string => ids['task'] ?? '';

export const TASK_ROUTES: readonly Route[] = [
  route({
    method: 'GET',
    path: '/api/tasks',
    summary: 'The list: who needs a person first',
    query: { project: 'Of this project alone.', q: 'Those whose goal, name, agent or history has all of these words.' },
    answer: ApiTasks,
    async run({ world, board, seq }, { query }) {
      const at = seq('tasks');
      await board.look('all');
      const project = query.get('project');
      const words = query.get('q');
      const tasks = board.tasks().filter((task) => project === null || task.project === project);
      const found = words === null || words.trim() === '' ? null : searchTasks(world, tasks, words);
      return {
        tasks: found === null ? tasks : tasks.filter(({ id }) => found.has(id)),
        parallel: (await taskDefaults(world)).parallel,
        seq: at,
      };
    },
  }),
  route({
    method: 'POST',
    path: '/api/tasks',
    summary: 'Hand goals to agents',
    body: StartTasks,
    answer: Started,
    async run(desk, { body }) {
      const { from, network, services, project, ...request } = body;
      const world = { ...desk.world, cwd: desk.places.path(project) };
      const goals = request.goals.map(({ text, name, agent }) => ({
        text,
        name: name ?? null,
        ...(agent === undefined ? {} : { agent }),
      }));
      const made = await startTasks(world, {
        ...request,
        goals,
        interactive: false,
        parallel: null,
        flags: { ...(network === undefined ? {} : { network }), ...(services === undefined ? {} : { services }) },
        ...(from === undefined ? {} : { from: await desk.task(from) }),
      });
      return seen(
        desk,
        made.map(({ task }) => task.id),
      );
    },
  }),
  route({
    method: 'GET',
    path: '/api/tasks/{task}',
    summary: 'One task in full',
    answer: ApiTaskDetail,
    async run({ world, board, task }, call) {
      const id = idOf(call);
      await board.touch(id);
      const stored = await task(id);
      const card = board.card(id);
      if (card === undefined) throw new Refusal(404, 'task.not-found', `There is no task "${id}".`);
      return taskDetail(world, card, stored);
    },
  }),
  route({
    method: 'DELETE',
    path: '/api/tasks/{task}',
    summary: 'Throw a task, its changes and its branch away',
    body: RemoveTask,
    answer: Removed,
    run: ({ world, board, inTurn }, call) =>
      inTurn(idOf(call), async () => {
        const entry = await exactEntry(world, idOf(call));
        const { freedBytes, branches } = await removeEntry(world, entry, { force: call.body.force });
        await board.look('all');
        return { freedBytes, branches: [...branches] };
      }),
  }),
  route({
    method: 'GET',
    path: '/api/tasks/{task}/events',
    summary: 'Its events: the last ones, or those after or before a number',
    query: {
      after: 'A sequence number.',
      before: 'A sequence number.',
      limit: 'At most 8000, and about 4 MB; without it 1000.',
    },
    answer: ApiEvents,
    async run({ task }, call) {
      const { paths } = await task(idOf(call));
      const { events, first, last } = readEventPage(paths.events, {
        after: number(call, 'after'),
        before: number(call, 'before'),
        limit: Math.max(1, Math.min(8000, number(call, 'limit') ?? 1000)),
      });
      return { events: events.map(apiEvent), first, last };
    },
  }),
  action('send', 'Tell the agent something', SendMessage, Sent, async (desk, task, { text }) => ({
    when: await sendMessage(desk.world, task, text),
  })),
  route({
    method: 'DELETE',
    path: '/api/tasks/{task}/messages/{message}',
    summary: 'Take back a message that the agent has not had yet',
    answer: Withdrawn,
    async run(desk, call) {
      return { text: withdraw(await desk.task(idOf(call)), call.ids['message'] ?? '') };
    },
  }),
  action('stop', 'Stop the agent; what it did so far is kept', StopTask, Stopped, async (_desk, task, { force }) => ({
    stopping: await stopTask(task, force),
  })),
  route({
    method: 'POST',
    path: '/api/tasks/{task}/continue',
    summary: 'Let an agent that stopped, failed or was killed go on where it was',
    answer: Sent,
    async run(desk, call) {
      const when = await continueTask(desk.world, await desk.task(idOf(call)));
      await desk.board.touch(idOf(call));
      return { when };
    },
  }),
  route({
    method: 'POST',
    path: '/api/tasks/{task}/restart',
    summary: 'Give the same goal to a fresh agent; the earlier result is kept',
    answer: Started,
    run: (desk, call) =>
      desk.inTurn(idOf(call), async () => {
        await restartTask(desk.world, await desk.task(idOf(call)));
        return seen(desk, [idOf(call)]);
      }),
  }),
  route({
    method: 'POST',
    path: '/api/tasks/{task}/fork',
    summary: 'Another task that begins with what this one did',
    body: ForkTask,
    answer: Started,
    async run(desk, call) {
      const { text, name, agent, model } = call.body;
      const made = await forkTask(desk.world, await desk.task(idOf(call)), { text, name, agent: agent ?? null, model });
      return seen(
        desk,
        made.map(({ task }) => task.id),
      );
    },
  }),
];

type Schema = Parameters<typeof route>[0]['answer'];

function action<Body extends Schema, Answer extends Schema>(
  verb: string,
  summary: string,
  body: Body,
  answer: Answer,
  act: (
    desk: Desk,
    task: Awaited<ReturnType<Desk['task']>>,
    body: Body['_zod']['output'],
  ) => Promise<Answer['_zod']['input']>,
): Route {
  return route({
    method: 'POST',
    path: `/api/tasks/{task}/${verb}`,
    summary,
    body,
    answer,
    async run(desk, call) {
      const done = await act(desk, await desk.task(idOf(call)), call.body as Body['_zod']['output']);
      await desk.board.touch(idOf(call));
      return done as never;
    },
  });
}

/** The list has them before the answer is there. */
async function seen({ board }: Desk, tasks: string[]): Promise<{ tasks: string[] }> {
  for (const id of tasks) await board.touch(id);
  return { tasks };
}

async function exactEntry(world: Desk['world'], id: string): ReturnType<typeof findEntry> {
  const entry = await findEntry(world, id);
  if (entry.id === id) return entry;
  throw new Refusal(404, 'task.not-found', `There is no task "${id}".`);
}

function number({ query }: Call<unknown>, name: string): number | null {
  const text = query.get(name);
  if (text === null) return null;
  if (/^\d{1,15}$/.test(text)) return Number(text);
  throw new Refusal(400, 'request.invalid', `"${name}" is a number.`);
}
