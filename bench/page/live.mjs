// bench/page/live.mjs: many tasks with many events a second, a tab on the list, a tab on one task, and scripts that count events: measures
// losses, costs and responsiveness.
import { join } from 'node:path';
import { count, number, summary } from '../stats.mjs';
import { quiet, wait } from '../fixture.mjs';
import { startHelper } from './helper.mjs';
import { addLiveTasks, makePlace, usage } from './place.mjs';
import { heapOf, metrics, openListAndTask, takeNotes } from './tab.mjs';

const LIMIT_DELAY_P99_MS = 500;
const LIMIT_INPUT_P99_MS = 200;

export async function benchLive(fixture, browser, plain, { tasks, live, perSecond, seconds }) {
  const place = makePlace(fixture, 'live');
  const { ids, watched } = addLiveTasks(place, tasks, live);
  const server = await place.serve();
  const listener = startHelper('listen');
  const talker = startHelper('talk');
  try {
    const lists = [];
    for (let i = 0; i < 5; i += 1) lists.push(await timeOf(() => server.get('/api/tasks')));
    listener.tell({ url: server.url, headers: server.headers, topics: ids.map((id) => `task:${id}`), after: 1 });
    await listener.answer();
    const tabs = await openListAndTask(browser, server, watched);
    const idleFrom = usage(server.pid);
    await wait(3000);
    const idle = share(idleFrom, usage(server.pid));
    await quiet(fixture);
    const before = await look(server, tabs);
    for (const tab of Object.values(tabs)) await takeNotes(tab);
    talker.tell({ tasksDir: join(place.state, 'tasks'), ids, perSecond, seconds, numbered: false });
    const done = { yes: false };
    const told = talker.answer().finally(() => (done.yes = true));
    told.catch(() => undefined);
    const under = timeOf(() => server.get('/api/tasks'));
    await Promise.all([useList(tabs.list, done), useTask(tabs.task, done)]);
    const { sent } = await told;
    const after = await look(server, tabs);
    const counts = await countAll(listener, sent);
    return section({
      tasks,
      live,
      perSecond,
      seconds,
      sent,
      counts,
      lists,
      underMs: await under,
      server: { idle, busy: share(before.server, after.server), mostMb: after.server.mostMb },
      tabs: await Promise.all(
        Object.entries(tabs).map(async ([name, tab]) => ({
          name,
          ...(await takeNotes(tab)),
          main:
            (100_000 * (after[name].TaskDuration - before[name].TaskDuration)) / (after.server.at - before.server.at),
          heapMb: await heapOf(tab),
        })),
      ),
    });
  } finally {
    await server.stop();
    for (const one of [listener, talker, place]) one.close();
  }
}

async function look(server, tabs) {
  return { list: await metrics(tabs.list), task: await metrics(tabs.task), server: usage(server.pid) };
}

/** Moves and selects; the page records the delays. */
async function useList({ page }, done) {
  for (let i = 0; !done.yes; i += 1) {
    if (i % 4 === 3) await page.locator('[data-task] input, [data-task] [role="checkbox"]').first().click();
    else await page.keyboard.press(i % 20 < 10 ? 'j' : 'k');
    await wait(100);
  }
}

/** Switches the filter back and forth. */
async function useTask({ page }, done) {
  const choices = page.getByLabel('Show').locator('button, [role="radio"]');
  for (let i = 0; !done.yes; i += 1) {
    await choices.nth(i % 2).click();
    await wait(150);
  }
}

/** Waits until all events have arrived, or until none arrives for a while. */
async function countAll(listener, sent) {
  for (let still = 0; ;) {
    listener.tell('report');
    const counts = await listener.answer();
    const all = [counts.socket, counts.stream];
    if (still >= 50 || all.every(({ events }) => events >= sent)) return counts;
    still += 1;
    await wait(100);
  }
}

async function timeOf(act) {
  const began = performance.now();
  await act();
  return performance.now() - began;
}

const share = (before, after) => (100 * (after.cpuMs - before.cpuMs)) / (after.at - before.at);
const part = (values, of) =>
  values.toSorted((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * of))] ?? Number.NaN;

function section({ tasks, live, perSecond, seconds, sent, counts, lists, underMs, server, tabs }) {
  const ways = [
    ['WebSocket', counts.socket],
    ['server-sent events', counts.stream],
  ];
  const names = { list: 'the list', task: 'a task that speaks' };
  const inputs = tabs.flatMap((tab) => tab.inputs);
  const lost = ways.reduce((sum, [, { events, wrong }]) => sum + Math.abs(sent - events) + wrong, 0);
  return {
    title: 'many live tasks',
    text: `${count(tasks)} tasks, of which ${live} say or do something ${perSecond} times a second each, for ${seconds} s: ${count(sent)} events. Meanwhile one tab shows the list and is used by keys and clicks, another shows one of these tasks and is filtered, and a script counts all events, over a WebSocket and over server-sent events. The delay is from the event's time until the script has it; "to the next frame" is from a key or click until its result is drawn.`,
    tables: [
      {
        caption: 'events',
        head: ['by', 'received', 'twice or out of order', 'delay, median', '99 of 100 within', 'all within'],
        rows: ways.map(([name, { events, wrong, delays }]) => [
          name,
          `${count(events)} of ${count(sent)}`,
          String(wrong),
          `${number(part(delays, 0.5))} ms`,
          `${number(part(delays, 0.99))} ms`,
          `${number(part(delays, 1))} ms`,
        ]),
      },
      {
        caption: 'tabs',
        head: [
          'shows',
          'main thread',
          'longest task',
          'keys and clicks',
          'to the next frame, median',
          '99 of 100 within',
          'heap',
        ],
        rows: tabs.map(({ name, main, longTasks, inputs: own, heapMb }) => [
          names[name],
          `${number(main)} %`,
          longTasks.length === 0 ? 'under 50 ms' : `${number(Math.max(...longTasks))} ms`,
          String(own.length),
          `${number(part(own, 0.5))} ms`,
          `${number(part(own, 0.99))} ms`,
          `${number(heapMb)} MB`,
        ]),
      },
      {
        caption: 'the server',
        head: ['of a core', 'while nothing happens', 'memory, most', 'the list, first', 'again', 'while they speak'],
        rows: [
          [
            `${number(server.busy)} %`,
            `${number(server.idle)} %`,
            `${number(server.mostMb)} MB`,
            `${number(lists[0])} ms`,
            `${number(summary(lists.slice(1)).median)} ms`,
            `${number(underMs)} ms`,
          ],
        ],
      },
    ],
    bars: [
      { name: `${live} live tasks: events lost, twice or out of order`, value: summary([lost]), atMost: 0 },
      {
        name: `${live} live tasks: delay of an event, 99 of 100 within, ms`,
        value: summary([Math.max(...ways.map(([, { delays }]) => part(delays, 0.99)))]),
        atMost: LIMIT_DELAY_P99_MS,
      },
      {
        name: `${live} live tasks: from a key or click to the next frame, 99 of 100 within, ms`,
        value: summary([part(inputs, 0.99)]),
        atMost: LIMIT_INPUT_P99_MS,
      },
    ],
  };
}
