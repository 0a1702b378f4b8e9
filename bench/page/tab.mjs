// bench/page/tab.mjs: measures a page in the system's Chromium: main-thread time, nodes, memory, frames, and the delay after a key press.
// Main-thread time is processor time, which hardly depends on other load.
import { chromium } from 'playwright-core';

const QUIET_MS = 1000;
/** Main-thread time in a quarter of a second; less than this is the page's clock. */
const QUIET_TASK_S = 0.02;

export async function openBrowser() {
  const browser = await chromium.launch({
    executablePath: process.env.AGS_CHROMIUM ?? '/usr/bin/chromium',
    // Chromium's own sandbox does not work for root. The page under test is ours.
    args: ['--no-sandbox', '--disable-gpu', '--font-render-hinting=none'],
  });
  return {
    /** Opens a window with an empty cache, signed in with a link or cookies. */
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
 * Opens a URL in a new tab; `shown`: the selector of the awaited content. Chromium draws only one tab of a window at full rate, so tabs that
 * are measured together need separate windows.
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

/** Opens the list and a task, in separate windows with one session. */
export async function openListAndTask(browser, server, task) {
  const context = await browser.window({ link: server.link });
  const second = await browser.window({ cookies: await context.cookies() });
  return {
    list: await openTab(context, server.home, '[data-task]'),
    task: await openTab(second, `${server.home}/t/${task}`, 'article'),
  };
}

/** The cost until the content was shown, and until the page became idle. */
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

/** Waits until the main thread has been idle for a while. */
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

/** Includes nodes in shadow roots. */
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

/** The size of the script heap after a garbage collection. */
export async function heapOf(tab) {
  await tab.cdp.send('HeapProfiler.collectGarbage');
  return (await metrics(tab)).JSHeapUsedSize / 2 ** 20;
}

/** Scrolls by some pixels per frame, at most to the end; returns late frames and their cost. */
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
      // Long tasks are reported a moment later.
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

/** The long tasks (over 50 ms) and input delays (from a key or click to the next frame) since the last call. */
export function takeNotes({ page }) {
  return page.evaluate(() => {
    const { longTasks, inputs } = globalThis.probe;
    return { longTasks: longTasks.splice(0), inputs: inputs.splice(0) };
  });
}

/** Runs before any script of the page. */
const PROBE = () => {
  const probe = { shownMs: null, longTasks: [], inputs: [] };
  globalThis.probe = probe;
  new PerformanceObserver((list) => {
    for (const { duration } of list.getEntries()) probe.longTasks.push(duration);
  }).observe({ type: 'longtask' });
  const painted = (event) => {
    // The task after a frame's callbacks runs when the frame is drawn.
    requestAnimationFrame(() => {
      const { port1, port2 } = new MessageChannel();
      port1.addEventListener('message', () => probe.inputs.push(performance.now() - event.timeStamp), { once: true });
      port1.start();
      port2.postMessage(null);
    });
  };
  for (const type of ['keydown', 'click']) addEventListener(type, painted, { capture: true });
};

/** Checks each frame for the element; "host >>> inner" searches shadow roots. */
const WATCH = (selector) => {
  const [outer, inner] = selector.split(' >>> ');
  const isThere = () =>
    inner === undefined
      ? document.querySelector(outer) !== null
      : [...document.querySelectorAll(outer)].some((host) => (host.shadowRoot?.querySelector(inner) ?? null) !== null);
  const look = () => {
    if (!isThere()) return requestAnimationFrame(look);
    requestAnimationFrame((time) => (globalThis.probe.shownMs = time));
  };
  requestAnimationFrame(look);
};
