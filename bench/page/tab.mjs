// bench/page/tab.mjs: the system's Chromium, and what a page costs it: time of its main thread, nodes, memory, frames, and how long
// somebody waits who presses a key. Time of the main thread is processor time, which depends little on what else the machine does.
import { chromium } from 'playwright-core';

const QUIET_MS = 1000;
/** Of the main thread, in a quarter of a second: less is the page's own clock. */
const QUIET_TASK_S = 0.02;

export async function openBrowser() {
  const browser = await chromium.launch({
    executablePath: process.env.AGS_CHROMIUM ?? '/usr/bin/chromium',
    // Its own sandbox does not work for root; what it shows here is ours.
    args: ['--no-sandbox', '--disable-gpu', '--font-render-hinting=none'],
  });
  return {
    /** A window with nothing in its cache, signed in if there is a link or somebody's cookies. */
    async window({ link, cookies } = {}) {
      const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, reducedMotion: 'reduce' });
      await context.addInitScript(PROBE);
      if (cookies !== undefined) await context.addCookies(cookies);
      if (link !== undefined) {
        const page = await context.newPage();
        await page.goto(link);
        await page.close();
      }
      return context;
    },
    close: () => browser.close(),
  };
}

/**
 * Opens an address in a tab of its own; `shown`: the selector of what one came for.
 * Of the tabs of a window only one is drawn sixty times a second: what is looked at at the same time needs windows of its own.
 */
export async function openTab(context, url, shown) {
  const page = await context.newPage();
  page.setDefaultTimeout(120_000);
  const cdp = await context.newCDPSession(page);
  await cdp.send('Performance.enable', { timeDomain: 'threadTicks' });
  await page.addInitScript(WATCH, shown);
  await page.goto(url);
  await page.waitForFunction(() => globalThis.probe.shownMs !== null);
  return { page, cdp };
}

/** What it took until that was shown, and until the page had nothing more to do. */
export async function openingOf(tab) {
  const first = await metrics(tab);
  const { shownMs, paintedMs } = await tab.page.evaluate(() => ({
    shownMs: globalThis.probe.shownMs,
    paintedMs: performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? Number.NaN,
  }));
  const settled = await settle(tab);
  return {
    paintedMs,
    shownMs,
    shownMainMs: first.TaskDuration * 1000,
    mainMs: settled.TaskDuration * 1000,
    nodes: await countNodes(tab),
    heapMb: await heapOf(tab),
  };
}

/** Until its main thread has had nothing to do for a while. */
async function settle(tab) {
  let last = await metrics(tab);
  for (let since = performance.now(); performance.now() - since < QUIET_MS;) {
    await tab.page.waitForTimeout(250);
    const next = await metrics(tab);
    if (next.TaskDuration - last.TaskDuration > QUIET_TASK_S) since = performance.now();
    last = next;
  }
  return last;
}

export async function metrics({ cdp }) {
  const { metrics: list } = await cdp.send('Performance.getMetrics');
  return Object.fromEntries(list.map(({ name, value }) => [name, value]));
}

/** With those in shadow roots. */
export function countNodes({ page }) {
  return page.evaluate(() => {
    const count = (root) =>
      [...root.querySelectorAll('*')].reduce(
        (sum, one) => sum + 1 + (one.shadowRoot === null ? 0 : count(one.shadowRoot)),
        0,
      );
    return count(document);
  });
}

/** Of scripts, without what nobody holds any more. */
export async function heapOf(tab) {
  await tab.cdp.send('HeapProfiler.collectGarbage');
  return (await metrics(tab)).JSHeapUsedSize / 2 ** 20;
}

/** Frame by frame, by so many pixels each, to the end at most: frames that came too late, and what they cost. */
export async function scroll(tab, { selector, frames, pixels }) {
  const before = await metrics(tab);
  const seen = await tab.page.evaluate(
    async ({ selector: of, frames: count, pixels: by }) => {
      const box = document.querySelector(of);
      globalThis.probe.longTasks.length = 0;
      const times = [];
      let last = await new Promise(requestAnimationFrame);
      for (let i = 0; i < count && box.scrollTop + box.clientHeight + 1 < box.scrollHeight; i += 1) {
        box.scrollTop += by;
        const now = await new Promise(requestAnimationFrame);
        times.push(now - last);
        last = now;
      }
      // What took long is told a moment later.
      await new Promise((done) => setTimeout(done, 200));
      const late = (time) => Math.max(0, Math.round((time * 60) / 1000) - 1);
      return {
        frames: times.length,
        dropped: times.reduce((sum, time) => sum + late(time), 0),
        longestMs: Math.max(0, ...globalThis.probe.longTasks),
        pixels: box.scrollTop,
      };
    },
    { selector, frames, pixels },
  );
  const mainMs = ((await metrics(tab)).TaskDuration - before.TaskDuration) * 1000;
  return { ...seen, frameMs: mainMs / seen.frames, dropped: (100 * seen.dropped) / (seen.frames + seen.dropped) };
}

/** What was noted since the last time: tasks of 50 ms and more, and from each key or click to the next frame. */
export function takeNotes({ page }) {
  return page.evaluate(() => {
    const { longTasks, inputs } = globalThis.probe;
    return { longTasks: longTasks.splice(0), inputs: inputs.splice(0) };
  });
}

/** Runs in the page before anything of it. */
const PROBE = () => {
  const probe = { shownMs: null, longTasks: [], inputs: [] };
  globalThis.probe = probe;
  new PerformanceObserver((list) => {
    for (const { duration } of list.getEntries()) probe.longTasks.push(duration);
  }).observe({ type: 'longtask' });
  const painted = (event) => {
    // The task after a frame's callbacks comes when the frame is drawn.
    requestAnimationFrame(() => {
      const { port1, port2 } = new MessageChannel();
      port1.addEventListener('message', () => probe.inputs.push(performance.now() - event.timeStamp), { once: true });
      port1.start();
      port2.postMessage(null);
    });
  };
  for (const type of ['keydown', 'click']) addEventListener(type, painted, { capture: true });
};

/** Looks at each frame whether it is there yet. */
const WATCH = (selector) => {
  const look = () => {
    if (document.querySelector(selector) === null) return requestAnimationFrame(look);
    requestAnimationFrame((time) => (globalThis.probe.shownMs = time));
  };
  requestAnimationFrame(look);
};
