// test/web/review-place.ts: a real server with a task that was worked on, and a real browser in front of its review.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { chromium, type Browser, type Page } from 'playwright-core';
import { expect } from 'vitest';
import { CALLERS } from '../harness.ts';
import { createServerMachine, enter, type ServerMachine } from '../server/place.ts';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

export async function openBrowser(): Promise<Browser> {
  return chromium.launch({
    executablePath: process.env['AGS_CHROMIUM'] ?? '/usr/bin/chromium',
    args: ['--no-sandbox', '--disable-gpu', '--font-render-hinting=none'],
  });
}

export interface Reviewed extends AsyncDisposable {
  readonly page: Page;
  /** What the browser complained of: refused by the policy, or thrown. */
  readonly complaints: string[];
}

export async function createPlace(
  files: Record<string, string>,
  tasks: Readonly<Record<string, string>>,
): Promise<ServerMachine> {
  const machine = await createServerMachine(CALLERS[0] ?? 'user', files);
  await Promise.all(Object.entries(tasks).map(([name, goal]) => machine.runDemo(name, goal)));
  return machine;
}

/** A browser of its own, signed in, at this address of the page. */
export async function openPage(
  browser: Browser,
  machine: ServerMachine,
  path: string,
  theme: 'light' | 'dark' = 'light',
): Promise<Reviewed> {
  const context = await browser.newContext({
    viewport: { width: 1440, height: 900 },
    colorScheme: theme,
    reducedMotion: 'reduce',
  });
  const [name = '', ...value] = (await cookieOf(machine)).split('=');
  await context.addCookies([{ name, value: value.join('='), url: `http://127.0.0.1:${machine.server.port}` }]);
  const page = await context.newPage();
  page.setDefaultTimeout(20_000);
  const complaints: string[] = [];
  page.on('pageerror', (error) => complaints.push(String(error)));
  page.on('console', (message) => {
    if (message.type() === 'error') complaints.push(message.text());
  });
  await page.goto(`http://127.0.0.1:${machine.server.port}/p/${machine.projectId}${path}`);
  return { page, complaints, [Symbol.asyncDispose]: () => context.close() };
}

export const openReview = (
  browser: Browser,
  machine: ServerMachine,
  task: string,
  theme?: 'light' | 'dark',
): Promise<Reviewed> => openPage(browser, machine, `/t/${task}/changes`, theme);

/** The link works once; the cookie that it gives is used by all. */
const cookies = new WeakMap<ServerMachine, Promise<string>>();
function cookieOf(machine: ServerMachine): Promise<string> {
  let cookie = cookies.get(machine);
  if (cookie === undefined) cookies.set(machine, (cookie = enter(machine.server)));
  return cookie;
}

/** Nothing that WCAG A and AA or good practice finds fault with. */
export async function expectAccessible(page: Page): Promise<void> {
  await page.evaluate(AXE);
  const found = await page.evaluate(async () => {
    const { axe } = globalThis as unknown as {
      axe: { run(): Promise<{ violations: { id: string; nodes: { target: unknown; failureSummary: string }[] }[] }> };
    };
    const { violations } = await axe.run();
    return violations.map(({ id, nodes }) => ({
      id,
      where: nodes.slice(0, 3).map(({ target, failureSummary }) => `${JSON.stringify(target)}: ${failureSummary}`),
    }));
  });
  expect(found).toEqual([]);
}

/** For a person to look at: only where a directory is named. */
export async function picture(page: Page, name: string): Promise<void> {
  const dir = process.env['AGS_PICTURES'];
  if (dir !== undefined) await page.screenshot({ path: `${dir}/${name}.png` });
}
