// bench/page/review.mjs: measures the browser's work for a review: opens changes of real tasks and scrolls through them.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { count, ms, number, ratio, spread, summary } from '../stats.mjs';
import { quiet, run } from '../fixture.mjs';
import { makePlace } from './place.mjs';
import { plainLines } from './plain.mjs';
import { openingOf, openTab, scroll } from './tab.mjs';

const LIMIT_MAIN_S = 1.5;
const LIMIT_NODES = 5000;
/** Pixels per step, as fast as a spun mouse wheel: a screen in a fifteenth of a second. */
const STEP_PX = 240;
/** Lines added and removed in each changed function. */
const CHANGED = 6;

/** `sizes`: the numbers of changed lines and of files. */
export async function benchReviewPage(fixture, browser, plain, { sizes, rounds, frames }) {
  const place = makePlace(fixture, 'review');
  prepare(place, sizes);
  for (const { lines } of sizes) change(fixture, place, `lines-${lines}`);
  const server = await place.serve();
  try {
    const context = await browser.window({ link: server.link });
    const found = [];
    for (const size of sizes)
      found.push(await reviewOf(fixture, { context, server, plain }, { ...size, rounds, frames }));
    return section(found, { rounds, frames });
  } finally {
    await server.stop();
    place.close();
  }
}

async function reviewOf(fixture, { context, server, plain }, { lines, files, rounds, frames }) {
  const task = `lines-${lines}`;
  const url = `${server.home}/t/${task}/changes`;
  const texts = await textsOf(server, task);
  const seen = texts.reduce(
    (sum, { patch }) => sum + patch.split('\n').filter((line) => /^[+-](?![+-]{2} )/.test(line)).length,
    0,
  );
  if (Math.abs(seen - lines) > lines / 10) throw new Error(`${seen} changed lines instead of ${lines}`);
  const other = plain.add(task, texts, plainLines);
  const look = async (address, shown, box) => {
    await quiet(fixture);
    const tab = await openTab(context, address, shown);
    const opening = await openingOf(tab);
    const scrolled = await scroll(tab, { selector: box, frames, pixels: STEP_PX });
    await tab.page.close();
    return { ...opening, scrolled };
  };
  const [ours, theirs] = [[], []];
  for (let round = 0; round < rounds; round += 1) {
    ours.push(await look(url, 'diffs-container >>> [data-line]', '.diff-view'));
    theirs.push(await look(other, '.line', 'html'));
  }
  return { lines: seen, files, ours, theirs };
}

function section(found, { rounds, frames }) {
  const of = (runs, what) => runs.map((one) => one[what]);
  const most = found.at(-1);
  const median = (runs, what) => summary(of(runs, what)).median;
  const looks = (name, { lines, files }, runs) => [
    name,
    `${count(lines)} in ${files} files`,
    ms(of(runs, 'shownMs')),
    ms(of(runs, 'mainMs')),
    count(median(runs, 'nodes')),
    `${number(median(runs, 'heapMb'))} MB`,
  ];
  const scrolls = (name, { lines }, all) => {
    const runs = all.map(({ scrolled }) => scrolled);
    return [
      name,
      count(lines),
      count(median(runs, 'pixels')),
      ms(of(runs, 'frameMs')),
      `${number(median(runs, 'dropped'))} %`,
      median(runs, 'longestMs') === 0 ? 'under 50 ms' : ms(of(runs, 'longestMs')),
    ];
  };
  const both = (row) => found.flatMap((one) => [row('**ags**', one, one.ours), row('plain page', one, one.theirs)]);
  return {
    title: 'a review',
    text: `A task's changes, opened in a browser with a warm cache; ${rounds} rounds. Lines are those added and removed, without context lines. "There" is when the first lines are in a frame; "main thread" is its processor time until it is idle. The plain page puts every line of the same patches into the document, three elements each, without colours, word marks or controls.`,
    tables: [
      {
        caption: 'opening it',
        head: ['', 'lines', 'there', 'main thread', 'nodes', 'heap'],
        rows: both(looks),
      },
      {
        caption: `scrolling through it, at most ${frames} frames of ${STEP_PX} pixels each`,
        head: ['', 'lines', 'pixels', 'main thread for a frame', 'frames dropped', 'longest task'],
        rows: both(scrolls),
      },
      {
        caption: 'ags over the plain page',
        head: ['lines', 'main thread', 'nodes'],
        rows: found.map(({ lines, ours, theirs }) => [
          count(lines),
          `${spread(ratio(of(ours, 'mainMs'), of(theirs, 'mainMs')))} ×`,
          `${spread(ratio(of(ours, 'nodes'), of(theirs, 'nodes')))} ×`,
        ]),
      },
    ],
    bars: [
      {
        name: `a review of ${count(most.lines)} lines: main thread, s`,
        value: summary(of(most.ours, 'mainMs').map((value) => value / 1000)),
        atMost: LIMIT_MAIN_S,
      },
      {
        name: `a review of ${count(most.lines)} lines: nodes`,
        value: summary(of(most.ours, 'nodes')),
        atMost: LIMIT_NODES,
      },
    ],
  };
}

function prepare(place, sizes) {
  mkdirSync(join(place.project, 'code'));
  for (const { lines, files } of sizes)
    for (let n = 0; n < files; n += 1)
      writeFileSync(join(place.project, `code/lines-${lines}-${n}.ts`), source(Math.round(lines / files / CHANGED)));
  place.settle();
  run(place.actor, ['git', 'add', '-A'], { cwd: place.project });
  run(place.actor, ['git', 'commit', '-qm', 'what will be changed'], { cwd: place.project });
}

function change(fixture, place, name) {
  const script = `cat >/dev/null; sed -i 's/before/after/g' code/${name}-*.ts`;
  run(place.actor, fixture.ags('start', name, 'change it', '--agent', `sh -c "${script}"`), { cwd: place.project });
}

async function textsOf(server, task) {
  const { id, files } = await server.get(`/api/tasks/${task}/changes`);
  const texts = [];
  for (let n = 0; n < files.length; n += 1) texts.push(await server.get(`/api/tasks/${task}/changes/${id}/files/${n}`));
  return texts.map(({ patch }, n) => ({ path: files[n].path, patch }));
}

/** Functions of eight lines, of which three change. */
function source(functions) {
  return Array.from({ length: functions }, (_, i) =>
    [
      `/** Part ${i} of the calculation. */`,
      `export function part${i}(items: readonly number[], options: { limit: number }): string {`,
      `  const chosen = items.filter((item) => item > options.limit + ${i}); // before`,
      `  if (chosen.length === 0) return 'nothing of before';`,
      '  const sum = chosen.reduce((total, item) => total + item, 0);',
      `  return \`before \${sum} of \${chosen.length}\`;`,
      '}',
      '',
    ].join('\n'),
  ).join('\n');
}
