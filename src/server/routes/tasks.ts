// server/routes/tasks.ts: list tasks, show one, and act on it.
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
import { route, type Call, type Api, type Route } from './route.ts';
import { taskDetail } from '../live/task-detail.ts';

const idOf = ({ ids }: Pick<Call<unknown>, 'ids'>): string => ids['task'] ?? '';

export const TASK_ROUTES: readonly Route[] = [
  route({
    method: 'GET',
    path: '/api/tasks',
    summary: 'List tasks; those that need you come first',
    query: {
      project: 'Only tasks of this project.',
      q: 'Only tasks whose goal, name, agent or history contains all of these words.',
    },
    answer: ApiTasks,
    async run({ context, taskIndex, seq }, { query }) {
      const at = seq('tasks');
      await taskIndex.look('all');
      const project = query.get('project');
      const words = query.get('q');
      const tasks = taskIndex.tasks().filter((task) => project === null || task.project === project);
      const found = words === null || words.trim() === '' ? null : searchTasks(context, tasks, words);
      return {
        tasks: found === null ? tasks : tasks.filter(({ id }) => found.has(id)),
        parallel: (await taskDefaults(context)).parallel,
        seq: at,
      };
    },
  }),
  route({
    method: 'POST',
    path: '/api/tasks',
    summary: 'Start tasks: give goals to agents',
    body: StartTasks,
    answer: Started,
    async run(api, { body }) {
      const { from, network, services, project, ...request } = body;
      const context = { ...api.context, cwd: api.knownProjects.path(project) };
      const goals = request.goals.map(({ text, name, agent }) => ({
        text,
        name: name ?? null,
        ...(agent === undefined ? {} : { agent }),
      }));
      const made = await startTasks(context, {
        ...request,
        goals,
        interactive: false,
        parallel: null,
        flags: { ...(network === undefined ? {} : { network }), ...(services === undefined ? {} : { services }) },
        ...(from === undefined ? {} : { from: await api.task(from) }),
      });
      return seen(
        api,
        made.map(({ task }) => task.id),
      );
    },
  }),
  route({
    method: 'GET',
    path: '/api/tasks/{task}',
    summary: 'One task in full',
    answer: ApiTaskDetail,
    async run({ context, taskIndex, task }, call) {
      const id = idOf(call);
      await taskIndex.touch(id);
      const stored = await task(id);
      const liveRow = taskIndex.liveRow(id);
      if (liveRow === undefined) throw new Refusal(404, 'task.not-found', `There is no task "${id}".`);
      return taskDetail(context, liveRow, stored);
    },
  }),
  route({
    method: 'DELETE',
    path: '/api/tasks/{task}',
    summary: 'Delete a task, its changes and its branch',
    body: RemoveTask,
    answer: Removed,
    run: ({ context, taskIndex, inTurn }, call) =>
      inTurn(idOf(call), async () => {
        const entry = await exactEntry(context, idOf(call));
        const { freedBytes, branches } = await removeEntry(context, entry, { force: call.body.force });
        await taskIndex.look('all');
        return { freedBytes, branches: [...branches] };
      }),
  }),
  route({
    method: 'GET',
    path: '/api/tasks/{task}/events',
    summary: 'Events of a task: the latest, or those after or before a number',
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
  action('send', 'Send the agent a message', SendMessage, Sent, async (api, task, { text }) => ({
    when: await sendMessage(api.context, task, text),
  })),
  route({
    method: 'DELETE',
    path: '/api/tasks/{task}/messages/{message}',
    summary: 'Withdraw a message that the agent has not received yet',
    answer: Withdrawn,
    async run(api, call) {
      return { text: withdraw(await api.task(idOf(call)), call.ids['message'] ?? '') };
    },
  }),
  action('stop', 'Stop the agent; what it did so far is kept', StopTask, Stopped, async (_api, task, { force }) => ({
    stopping: await stopTask(task, force),
  })),
  route({
    method: 'POST',
    path: '/api/tasks/{task}/continue',
    summary: 'Continue an agent that stopped, failed or was killed',
    answer: Sent,
    async run(api, call) {
      const when = await continueTask(api.context, await api.task(idOf(call)));
      await api.taskIndex.touch(idOf(call));
      return { when };
    },
  }),
  route({
    method: 'POST',
    path: '/api/tasks/{task}/restart',
    summary: 'Start a new run with the same goal; the earlier result is kept',
    answer: Started,
    run: (api, call) =>
      api.inTurn(idOf(call), async () => {
        await restartTask(api.context, await api.task(idOf(call)));
        return seen(api, [idOf(call)]);
      }),
  }),
  route({
    method: 'POST',
    path: '/api/tasks/{task}/fork',
    summary: 'Start another task from the result of this one',
    body: ForkTask,
    answer: Started,
    async run(api, call) {
      const { text, name, agent, model } = call.body;
      const made = await forkTask(api.context, await api.task(idOf(call)), { text, name, agent: agent ?? null, model });
      return seen(
        api,
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
    api: Api,
    task: Awaited<ReturnType<Api['task']>>,
    body: Body['_zod']['output'],
  ) => Promise<Answer['_zod']['input']>,
): Route {
  return route({
    method: 'POST',
    path: `/api/tasks/{task}/${verb}`,
    summary,
    body,
    answer,
    async run(api, call) {
      const done = await act(api, await api.task(idOf(call)), call.body as Body['_zod']['output']);
      await api.taskIndex.touch(idOf(call));
      return done as never;
    },
  });
}

/** Adds the tasks to the index before the response is sent. */
async function seen({ taskIndex }: Api, tasks: string[]): Promise<{ tasks: string[] }> {
  for (const id of tasks) await taskIndex.touch(id);
  return { tasks };
}

async function exactEntry(context: Api['context'], id: string): ReturnType<typeof findEntry> {
  const entry = await findEntry(context, id);
  if (entry.id === id) return entry;
  throw new Refusal(404, 'task.not-found', `There is no task "${id}".`);
}

function number({ query }: Call<unknown>, name: string): number | null {
  const text = query.get(name);
  if (text === null) return null;
  if (/^\d{1,15}$/.test(text)) return Number(text);
  throw new Refusal(400, 'request.invalid', `"${name}" is a number.`);
}
