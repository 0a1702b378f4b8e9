// bench/page/timeline.mjs: the page of a task with a long history: measures the time until its end is shown, and the cost of scrolling back.
import { count, ms, number, ratio, spread, summary } from '../stats.mjs';
import { quiet } from '../fixture.mjs';
import { makePlace, usualEvent } from './place.mjs';
import { plainItems } from './plain.mjs';
import { countNodes, heapOf, metrics, openingOf, openTab } from './tab.mjs';

const END = '[data-kind="ended"]';
const FEED = '[role="feed"]';

/** `sizes`: numbers of events; `plainUpTo`: the maximum for the plain page; `back`: the number of events to scroll back. */
export async function benchTimeline(fixture, browser, plain, { sizes, rounds, plainUpTo, back }) {
  const place = makePlace(fixture, 'timeline');
  for (const size of sizes)
    place.add(`events-${size}`, {
      events: [
        ...Array.from({ length: size - 2 }, (_, i) => usualEvent(i)),
        { type: 'run.ended', state: 'no-changes', reason: '' },
      ],
    });
  place.settle();
  const server = await place.serve();
  try {
    const context = await browser.window({ link: server.link });
    const found = [];
    for (const size of sizes) {
      const url = `${server.home}/t/events-${size}`;
      const other =
        size > plainUpTo ? null : plain.add(`events-${size}`, await eventsOf(server, `events-${size}`), plainItems);
      const [ours, theirs] = [[], []];
      for (let round = 0; round < rounds; round += 1) {
        await quiet(fixture);
        const tab = await openTab(context, url, END);
        ours.push(await openingOf(tab));
        await tab.page.close();
        if (other === null) continue;
        const second = await openTab(context, other, '.item');
        theirs.push(await openingOf(second));
        await second.page.close();
      }
      found.push({ size, ours, theirs });
    }
    const backwards = [];
    for (const size of back) backwards.push({ size, ...(await goBack(context, `${server.home}/t/events-${size}`)) });
    return section(found, backwards, rounds);
  } finally {
    await server.stop();
    place.close();
  }
}

/** Scrolls up to the first event, as a user would. */
async function goBack(context, url) {
  const tab = await openTab(context, url, END);
  await openingOf(tab);
  const before = await metrics(tab);
  const began = performance.now();
  await tab.page.evaluate(async (feed) => {
    const box = document.querySelector(feed);
    globalThis.probe.longTasks.length = 0;
    const first = () => document.querySelector('[data-kind="prepare"]') !== null && box.scrollTop === 0;
    while (!first()) {
      box.scrollTop = 0;
      await new Promise(requestAnimationFrame);
    }
  }, FEED);
  const wallMs = performance.now() - began;
  const mainMs = ((await metrics(tab)).TaskDuration - before.TaskDuration) * 1000;
  const longestMs = await tab.page.evaluate(() => Math.max(0, ...globalThis.probe.longTasks));
  const result = { wallMs, mainMs, longestMs, nodes: await countNodes(tab), heapMb: await heapOf(tab) };
  await tab.page.close();
  return result;
}

function section(found, backwards, rounds) {
  const of = (runs, what) => runs.map((one) => one[what]);
  const median = (runs, what) => summary(of(runs, what)).median;
  const [least, most] = [found[0], found.at(-1)];
  return {
    title: 'a long timeline',
    text: `The page of a finished task, with typical events; ${rounds} rounds, in a browser with a warm cache. "There" is when its last event is in a frame. The plain page gets all events at once and makes one element of each. "Going back" is scrolling up, without a pause, until the first event is there; by then every event has been loaded.`,
    tables: [
      {
        caption: 'opening it',
        head: [
          'events',
          'there',
          'main thread',
          'nodes',
          'heap',
          'plain: there',
          'main thread',
          'nodes',
          'ours is, by main thread',
        ],
        rows: found.map(({ size, ours, theirs }) => [
          count(size),
          ms(of(ours, 'shownMs')),
          ms(of(ours, 'mainMs')),
          count(median(ours, 'nodes')),
          `${number(median(ours, 'heapMb'))} MB`,
          ...(theirs.length === 0
            ? ['', '', '', '']
            : [
                ms(of(theirs, 'shownMs')),
                ms(of(theirs, 'mainMs')),
                count(median(theirs, 'nodes')),
                `${spread(ratio(of(ours, 'mainMs'), of(theirs, 'mainMs')))} ×`,
              ]),
        ]),
      },
      {
        caption: 'going back to its beginning',
        head: ['events', 'takes', 'main thread', 'longest task', 'nodes', 'heap'],
        rows: backwards.map(({ size, wallMs, mainMs, longestMs, nodes, heapMb }) => [
          count(size),
          `${number(wallMs / 1000)} s`,
          `${number(mainMs / 1000)} s`,
          `${number(longestMs)} ms`,
          count(nodes),
          `${number(heapMb)} MB`,
        ]),
      },
    ],
    bars: [
      {
        name: `a timeline of ${count(most.size)} events is there, over one of ${count(least.size)}`,
        value: ratio(of(most.ours, 'shownMs'), of(least.ours, 'shownMs')),
        atMost: 2,
      },
      {
        name: `a timeline of ${count(most.size)} events: heap, MB`,
        value: summary(of(most.ours, 'heapMb')),
        atMost: 80,
      },
    ],
  };
}

async function eventsOf(server, task) {
  const all = [];
  for (;;) {
    const { events, last } = await server.get(`/api/tasks/${task}/events?after=${all.length}&limit=1000`);
    all.push(...events);
    if (events.length === 0 || all.length >= last) return all;
  }
}
