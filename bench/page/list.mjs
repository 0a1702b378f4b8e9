// bench/page/list.mjs: measures the page's size and the time until the task list appears.
import { gzipSync } from 'node:zlib';
import { count, ms, number, ratio, spread, summary } from '../stats.mjs';
import { quiet } from '../fixture.mjs';
import { makePlace, usualEvent } from './place.mjs';
import { plainRows } from './plain.mjs';
import { openingOf, openTab } from './tab.mjs';

const ROW = '[data-task]';
const LIMIT_SCRIPT_KB = 250;
/** Running tasks beside finished ones, as on a usual day. */
const LIVE = 4;

export async function benchList(fixture, browser, plain, { sizes, rounds }) {
  const found = [];
  for (const size of sizes) found.push(await listOf(fixture, browser, plain, size, rounds));
  const { weights } = found.at(-1);
  const of = (runs, what) => runs.map((run) => run[what]);
  return {
    title: 'the list of tasks',
    text: `A first visit, with nothing in the browser's cache; ${rounds} rounds. "Rows" is the time until the first rows are in a frame; "main thread" is its processor time until it is idle. The plain page reads the same response and puts one row of seven cells for each task into the document, without any framework; ratios compare values of the same round.`,
    tables: [
      {
        caption: 'what is loaded at the start, compressed by gzip',
        head: ['address', 'JavaScript', 'CSS', 'fonts, as they are', 'requests'],
        rows: weights.map(({ name, script, stylesheet, font, requests }) => [
          name,
          `${number(script / 1000)} kB`,
          `${number(stylesheet / 1000)} kB`,
          `${number(font / 1000)} kB`,
          String(requests),
        ]),
      },
      {
        caption: 'until it is there',
        head: [
          'tasks',
          'first contentful paint',
          'rows',
          'main thread',
          'nodes',
          'heap',
          'plain: rows',
          'main thread',
          'nodes',
          'ours is, by main thread',
        ],
        rows: found.map(({ size, ours, theirs }) => [
          count(size),
          ms(of(ours, 'paintedMs')),
          ms(of(ours, 'shownMs')),
          ms(of(ours, 'mainMs')),
          count(summary(of(ours, 'nodes')).median),
          `${number(summary(of(ours, 'heapMb')).median)} MB`,
          ms(of(theirs, 'shownMs')),
          ms(of(theirs, 'mainMs')),
          count(summary(of(theirs, 'nodes')).median),
          `${spread(ratio(of(ours, 'mainMs'), of(theirs, 'mainMs')))} ×`,
        ]),
      },
    ],
    bars: [
      { name: 'JavaScript at the start, kB', value: summary([weights[0].script / 1000]), atMost: LIMIT_SCRIPT_KB },
      {
        name: `rows of ${count(sizes.at(-1))} tasks, over those of ${count(sizes[0])}`,
        value: ratio(of(found.at(-1).ours, 'shownMs'), of(found[0].ours, 'shownMs')),
        atMost: 2,
      },
    ],
  };
}

async function listOf(fixture, browser, plain, size, rounds) {
  const place = makePlace(fixture, `list-${size}`);
  for (let i = 0; i < size; i += 1)
    place.add(`task-${i}`, { number: i, live: i < LIVE, events: Array.from({ length: 20 }, (_, n) => usualEvent(n)) });
  place.settle();
  const server = await place.serve();
  try {
    const other = plain.add(`list-${size}`, await server.get('/api/tasks'), plainRows);
    const entered = await browser.window({ link: server.link });
    const cookies = await entered.cookies();
    const weights = await weightsOf(entered, [
      ['the list', server.home],
      ['a task', `${server.home}/t/task-0`],
    ]);
    await entered.close();
    const [ours, theirs] = [[], []];
    for (let round = 0; round < rounds; round += 1) {
      await quiet(fixture);
      ours.push(await visit(browser, cookies, server.home, ROW));
      theirs.push(await visit(browser, [], other, '.row'));
    }
    return { size, ours, theirs, weights };
  } finally {
    await server.stop();
    place.close();
  }
}

async function visit(browser, cookies, url, selector) {
  const context = await browser.window({ cookies });
  try {
    return await openingOf(await openTab(context, url, selector));
  } finally {
    await context.close();
  }
}

async function weightsOf(context, addresses) {
  const weights = [];
  for (const [name, url] of addresses) {
    const page = await context.newPage();
    const bodies = [];
    page.on('response', (response) => {
      const type = response.request().resourceType();
      if (['script', 'stylesheet', 'font'].includes(type))
        bodies.push(
          response.body().then((body) => ({ type, bytes: (type === 'font' ? body : gzipSync(body)).length })),
        );
    });
    await page.goto(url, { waitUntil: 'networkidle' });
    const all = await Promise.all(bodies);
    const bytes = (type) => all.reduce((sum, one) => sum + (one.type === type ? one.bytes : 0), 0);
    weights.push({
      name,
      script: bytes('script'),
      stylesheet: bytes('stylesheet'),
      font: bytes('font'),
      requests: all.length,
    });
    await page.close();
  }
  return weights;
}
