// bench/page/bench.mjs: measures the server and the page in a real browser with a real `ags serve`.
import { benchList } from './list.mjs';
import { benchLive } from './live.mjs';
import { servePlain } from './plain.mjs';
import { benchReturn } from './return.mjs';
import { benchReviewPage } from './review.mjs';
import { openBrowser } from './tab.mjs';
import { benchTimeline } from './timeline.mjs';

/** Prefixes of section titles and bar names: a run of the page alone replaces only those. */
export const PAGE = { title: 'The page: ', bar: 'the page: ' };

const PARTS = {
  list: benchList,
  review: benchReviewPage,
  timeline: benchTimeline,
  live: benchLive,
  return: benchReturn,
};

export async function benchPage(fixture, effort, only = Object.keys(PARTS)) {
  const plain = await servePlain();
  const sections = [];
  try {
    for (const name of only) {
      process.stderr.write(`${name} `);
      // A new browser for each part, so that none inherits the memory of another.
      const browser = await openBrowser();
      try {
        sections.push(await PARTS[name](fixture, browser, plain, effort[name]));
      } finally {
        await browser.close();
      }
    }
  } finally {
    plain.close();
  }
  return sections.map((section) => ({
    ...section,
    title: `${PAGE.title}${section.title}`,
    bars: section.bars.map((bar) => ({ ...bar, name: `${PAGE.bar}${bar.name}` })),
  }));
}

export const PAGE_EFFORT = {
  quick: {
    list: { sizes: [10, 100], rounds: 2 },
    review: { sizes: [{ lines: 500, files: 11 }], rounds: 2, frames: 100 },
    timeline: { sizes: [1000, 5000], rounds: 2, plainUpTo: 1000, back: [5000] },
    live: { tasks: 100, live: 20, perSecond: 20, seconds: 4 },
    return: { tasks: 50, live: 5, perSecond: 20, rounds: 1, awayMs: 5000 },
  },
  full: {
    list: { sizes: [10, 100, 1000], rounds: 5 },
    review: {
      sizes: [
        { lines: 500, files: 11 },
        { lines: 5000, files: 110 },
        { lines: 50_000, files: 220 },
      ],
      rounds: 3,
      frames: 400,
    },
    timeline: { sizes: [1000, 10_000, 100_000], rounds: 3, plainUpTo: 100_000, back: [1000, 10_000, 100_000] },
    live: { tasks: 1000, live: 200, perSecond: 20, seconds: 15 },
    return: { tasks: 1000, live: 20, perSecond: 20, rounds: 3, awayMs: 20_000 },
  },
};
