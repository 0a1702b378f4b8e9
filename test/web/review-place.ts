// test/web/review-place.ts: a real server with a task that was worked on, and a real browser in front of its review.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { chromium, type Browser, type Page } from 'playwright-core';
import { expect } from 'vitest';
import { CALLERS } from '../harness.ts';
import { createServerMachine, type ServerMachine } from '../server/place.ts';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

export async function openBrowser(): Promise<Browser> {
  return chromium.launch({
    executablePath: process.env['AGS_CHROMIUM'] ?? '/usr/bin/chromium',
    args: ['--no-sandbox', '--disable-gpu', '--font-render-hinting=none'],
  });
}

export interface Reviewed extends AsyncDisposable {
  readonly machine: ServerMachine;
  readonly page: Page;
  /** What the browser complained of: refused by the policy, or thrown. */
  readonly complaints: string[];
  url(task: string): string;
}

/** The demo agent has done this; its review is open. */
export async function review(
  browser: Browser,
  goal: string,
  options: {
    files?: Record<string, string>;
    task?: string;
    theme?: 'light' | 'dark';
    before?: (machine: ServerMachine) => void;
  } = {},
): Promise<Reviewed> {
  const machine = await createServerMachine(CALLERS[0] ?? 'user', options.files);
  const task = options.task ?? 'work';
  await machine.runDemo(task, goal);
  options.before?.(machine);
  const context = await browser.newContext({
    viewport: { width: 1440, height: 900 },
    colorScheme: options.theme ?? 'light',
    reducedMotion: 'reduce',
  });
  const page = await context.newPage();
  page.setDefaultTimeout(10_000);
  const complaints: string[] = [];
  page.on('pageerror', (error) => complaints.push(String(error)));
  page.on('console', (message) => {
    if (message.type() === 'error') complaints.push(message.text());
  });
  const url = (id: string): string => `http://127.0.0.1:${machine.server.port}/p/${machine.projectId}/t/${id}/changes`;
  await page.goto(machine.server.link);
  await page.goto(url(task));
  return {
    machine,
    page,
    complaints,
    url,
    async [Symbol.asyncDispose]() {
      await context.close();
      machine[Symbol.dispose]();
    },
  };
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
