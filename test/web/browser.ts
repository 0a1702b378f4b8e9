// test/web/browser.ts: a real browser and a real `ags serve`, signed in with the link that the server printed.
// needs: chromium, sandbox
import { gzipSync } from 'node:zlib';
import axe from 'axe-core';
import { chromium, type Browser, type BrowserContext, type BrowserContextOptions, type Page } from 'playwright-core';
import { expect } from 'vitest';
import { ONE } from '../harness.ts';
import { createServerMachine, type ServerMachine } from '../server/place.ts';

export interface Place extends AsyncDisposable {
  readonly machine: ServerMachine;
  readonly browser: Browser;
  /** Opens another window with the same session. */
  open(path: string, options?: BrowserContextOptions): Promise<Window>;
  task(id: string): string;
  readonly tasks: string;
}

export interface Window extends AsyncDisposable {
  readonly page: Page;
  readonly context: BrowserContext;
  /** Console errors (including policy violations), thrown errors and requests to other hosts. */
  readonly complaints: string[];
}

/** Chromium drops its connections when a network interface comes or goes, as engines of other test files make them. The page asks again. */
const NETWORK_CHANGED = 'net::ERR_NETWORK_CHANGED';

export async function createPlace(files?: Record<string, string>): Promise<Place> {
  const machine = await createServerMachine(ONE, files);
  const browser = await chromium.launch({
    executablePath: process.env['AGS_CHROMIUM'] ?? '/usr/bin/chromium',
    // Chromium's own sandbox does not work for root. The page under test is ours.
    args: ['--no-sandbox', '--disable-gpu', '--font-render-hinting=none'],
  });
  const base = new URL(machine.server.link).origin;
  const first = await browser.newContext();
  await (await first.newPage()).goto(machine.server.link);
  const cookies = await first.cookies();
  await first.close();
  return {
    machine,
    browser,
    tasks: `/p/${machine.projectId}`,
    task: (id) => `/p/${machine.projectId}/t/${id}`,
    async open(path, options = {}) {
      const context = await browser.newContext({
        viewport: { width: 1440, height: 900 },
        reducedMotion: 'reduce',
        ...options,
      });
      await context.addCookies(cookies);
      const page = await context.newPage();
      // A busy machine is slow.
      page.setDefaultTimeout(45_000);
      const complaints: string[] = [];
      page.on('pageerror', (error) => complaints.push(`thrown: ${error.message}`));
      page.on('console', (message) => {
        if (message.type() !== 'error' || message.text().includes(NETWORK_CHANGED)) return;
        complaints.push(`console: ${message.text()}`);
      });
      page.on('request', (request) => {
        const url = new URL(request.url());
        if (url.host !== new URL(base).host && url.protocol !== 'blob:') complaints.push(`asked for ${request.url()}`);
      });
      await page.goto(`${base}${path}`);
      return {
        page,
        context,
        complaints,
        async [Symbol.asyncDispose]() {
          await picture(page, path.replaceAll(/\W+/g, '-'));
          await context.close();
        },
      };
    },
    async [Symbol.asyncDispose]() {
      await browser.close();
      machine[Symbol.dispose]();
    },
  };
}

/** Waits until the text is visible. */
export async function seen(page: Page, words: string): Promise<void> {
  await page.getByText(words).filter({ visible: true }).first().waitFor();
}

/** Presses a letter and agrees to the question that it opens. Keys as fast as those of a word do not, hence the pause. */
export async function agreeTo(page: Page, key: string, title: string | RegExp): Promise<void> {
  await page.waitForTimeout(300);
  await page.keyboard.press(key);
  await page
    .getByRole('dialog', { name: title })
    .getByText('Enter', { exact: true })
    .filter({ visible: true })
    .waitFor();
  await page.keyboard.press('Enter');
}

/** Expects no violations of WCAG A and AA or axe's best practices. */
export async function expectAccessible(page: Page): Promise<void> {
  await page.evaluate(axe.source);
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

/** Gzip size of all scripts that a path loads without user interaction. */
export async function scriptBytes(place: Place, path: string): Promise<number> {
  const scripts: Promise<Buffer>[] = [];
  await using window = await place.open('/favicon.svg');
  window.page.on('response', (response) => {
    if (response.request().resourceType() === 'script') scripts.push(response.body());
  });
  await window.page.goto(new URL(path, window.page.url()).href, { waitUntil: 'networkidle' });
  return (await Promise.all(scripts)).reduce((sum, body) => sum + gzipSync(body).length, 0);
}

/** Saves a screenshot for a person to look at, if AGS_PICTURES names a directory. */
export async function picture(page: Page, name: string): Promise<void> {
  const dir = process.env['AGS_PICTURES'];
  if (dir !== undefined) await page.screenshot({ path: `${dir}/${name}.png` });
}
