// bench/page/return.mjs: restarts the server while tasks are active: measures the time until a page is live again, and verifies its events.
import { join } from 'node:path';
import { count, ms, summary } from '../stats.mjs';
import { quiet, wait } from '../fixture.mjs';
import { startHelper } from './helper.mjs';
import { addLiveTasks, makePlace } from './place.mjs';
import { openListAndTask } from './tab.mjs';

const LIMIT_S = 3;
const FEED = '[role="feed"]';

export async function benchReturn(fixture, browser, plain, { tasks, live, perSecond, rounds, awayMs }) {
  const place = makePlace(fixture, 'return');
  const { ids, watched } = addLiveTasks(place, tasks, live);
  const talker = startHelper('talk');
  let server = await place.serve();
  try {
    const tabs = await openListAndTask(browser, server, watched);
    await quiet(fixture);
    talker.tell({ tasksDir: join(place.state, 'tasks'), ids, perSecond, seconds: null, numbered: true });
    const told = talker.answer();
    told.catch(() => undefined);
    const restart = async (pauseMs) => {
      const began = performance.now();
      await server.stop();
      await wait(pauseMs);
      const startedMs = performance.now();
      server = await place.serve(server.port);
      const servesMs = performance.now();
      const { last } = await server.get(`/api/tasks/${watched}/events?limit=1`);
      // Waits for an event from after the restart.
      const [list, task] = await Promise.all([
        showsSince(tabs.list, `[data-task="${watched}"]`, last + 1),
        showsSince(tabs.task, FEED, last + 1),
      ]);
      return {
        startMs: servesMs - startedMs,
        listMs: list - servesMs,
        taskMs: task - servesMs,
        allMs: Math.max(list, task) - began - pauseMs,
      };
    };
    const short = [];
    for (let round = 0; round < rounds; round += 1) {
      short.push(await restart(0));
      await wait(1000);
    }
    const long = [await restart(awayMs)];
    talker.tell('stop');
    const last = new Map((await told).last).get(watched);
    await showsSince(tabs.task, FEED, last);
    return section({ tasks, live, perSecond, rounds, awayMs, short, long, shown: await numbersOf(tabs.task), last });
  } finally {
    await server.stop();
    for (const one of [talker, place]) one.close();
  }
}

/** The time when the element shows this event number or a later one. */
async function showsSince({ page }, selector, wanted) {
  await page.waitForFunction(
    ([of, least]) => {
      const numbers = [...(document.querySelector(of)?.textContent.matchAll(/This is event (\d+) of it/g) ?? [])];
      return numbers.some(([, n]) => Number(n) >= least);
    },
    [selector, wanted],
    { polling: 'raf' },
  );
  return performance.now();
}

/** The numbers of all events in the timeline, in displayed order. */
async function numbersOf({ page }) {
  return page.evaluate(async (feed) => {
    const box = document.querySelector(feed);
    const frame = () => new Promise(requestAnimationFrame);
    const found = new Map();
    box.scrollTop = 0;
    for (let still = 0; still < 10;) {
      await frame();
      await frame();
      for (const item of box.querySelectorAll('article')) {
        const n = /This is event (\d+) of it/.exec(item.textContent)?.[1];
        if (n !== undefined) found.set(Number(item.dataset.index), Number(n));
      }
      const before = box.scrollTop;
      box.scrollTop += box.clientHeight / 2;
      still = box.scrollTop === before ? still + 1 : 0;
    }
    return [...found].sort(([a], [b]) => a - b).map(([, n]) => n);
  }, FEED);
}

function section({ tasks, live, perSecond, rounds, awayMs, short, long, shown, last }) {
  const wanted = Array.from({ length: last - 1 }, (_, i) => i + 2);
  const there = new Set(shown);
  const lost = wanted.filter((n) => !there.has(n)).length;
  const doubled = shown.length - there.size;
  const unordered = shown.filter((n, i) => i > 0 && n < shown[i - 1]).length;
  const row = (name, runs) => [
    name,
    ms(runs.map((one) => one.startMs)),
    ms(runs.map((one) => one.listMs)),
    ms(runs.map((one) => one.taskMs)),
    ms(runs.map((one) => one.allMs)),
  ];
  return {
    title: 'a server that is started anew',
    text: `${count(tasks)} tasks, ${live} of them live with ${perSecond} events a second each, a tab on the list and one on a live task. The server is stopped and started on the same port: ${rounds} times at once, and once after ${awayMs / 1000} s. A tab is live again when it shows an event that happened after the server was stopped; "all" is from the end of the earlier server until both tabs are live, without the pause. At the end the test reads the timeline from its beginning: ${count(last - 1)} events happened meanwhile, ${lost} were missing, ${doubled} were there twice, ${unordered} were out of order.`,
    tables: [
      {
        head: ['started again', 'the server starts in', 'the list is live after', 'the task', 'all'],
        rows: [row('at once', short), row(`after ${awayMs / 1000} s`, long)],
      },
    ],
    bars: [
      {
        name: 'a server started anew at once: until its tabs are live again, s',
        value: summary(short.map((one) => one.allMs / 1000)),
        atMost: LIMIT_S,
      },
      {
        name: `a server that was away for ${awayMs / 1000} s: until its tabs are live again once it is there, s`,
        value: summary(long.map((one) => Math.max(one.listMs, one.taskMs) / 1000)),
        atMost: LIMIT_S,
      },
      {
        name: 'a server started anew: events missing, twice or out of order',
        value: summary([lost + doubled + unordered]),
        atMost: 0,
      },
    ],
  };
}
