// scripts/pictures.mjs: `node scripts/pictures.mjs`: takes the pictures of docs/pictures from the real page with real tasks in a throw-away
// project. Needs a build, PostgreSQL, Redis and Chromium; `AGS_CHROMIUM` replaces /usr/bin/chromium.
import { execFileSync, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { chromium } from 'playwright-core';

const root = fileURLToPath(new URL('..', import.meta.url));
const out = join(root, 'docs/pictures');
const home = mkdtempSync(join(tmpdir(), 'ags-pictures-'));
const project = join(home, 'webshop');
const env = { PATH: process.env.PATH, HOME: home, SHELL: '/bin/sh', TERM: 'dumb', LANG: 'C.UTF-8', NO_COLOR: '1' };
const MOST_BYTES = 200_000;

const DATES = `import { zone } from './zone.ts';

export function today(now: Date = new Date()): string {
  return now.toLocaleDateString('en-GB');
}

export function daysBetween(a: Date, b: Date): number {
  return Math.round((b.getTime() - a.getTime()) / 86_400_000);
}

export function isLeapYear(year: number): boolean {
  return year % 4 === 0;
}

export function startOfDay(date: Date): Date {
  const day = new Date(date);
  day.setHours(0, 0, 0, 0);
  return day;
}
`;
const FILES = {
  'ags.yaml':
    'checks: [node --test]\nmerge: {check: true}\nservices:\n  db: {preset: postgres, seed: [db/schema.sql]}\n  cache: redis\n',
  'db/schema.sql': 'create table orders (id int primary key);\n',
  'README.md': '# Webshop\n\nA small shop: products, a cart, orders.\n\n    npm test\n',
  'package.json': '{\n  "name": "webshop",\n  "type": "module",\n  "scripts": {\n    "test": "node --test"\n  }\n}\n',
  'src/date.ts': DATES,
  'src/zone.ts': "export const zone = 'Europe/Berlin';\n",
  'src/search.ts': 'export const rank = (hits: number): number => hits;\n',
  'src/cart.ts': 'export const total = (prices: number[]): number => prices.reduce((sum, one) => sum + one, 0);\n',
  'test/date.test.mjs': "import { test } from 'node:test';\n\ntest('today', () => {});\n",
};
// Goals of the demo agent: a title, then its steps.
const TASKS = {
  'update-readme': ['Write down how to run the tests', 'append: README.md Tests run in any time zone.', 'use: 40000'],
  'date-tests': [
    'Make the date tests independent of the time zone',
    'say: The tests read the clock of the machine. I pass the time zone in, and correct the **leap year** rule on the way.',
    'read: src/date.ts',
    'read: test/date.test.mjs',
    "run: sed -i -e 's/now.toLocaleDateString(.en-GB.)/now.toLocaleDateString(\"en-GB\", { timeZone: zone })/' -e 's/return year % 4 === 0;/return year % 4 === 0 \\&\\& (year % 100 !== 0 || year % 400 === 0);/' -e 's/day.setHours(0, 0, 0, 0);/day.setUTCHours(0, 0, 0, 0);/' src/date.ts",
    "write: test/leap.test.mjs import { test } from 'node:test';",
    'write: docs/time-zones.md Dates are shown in the zone of the shop; tests name theirs.',
    `run: sed -i 's/"test": "node --test"/"test": "TZ=UTC node --test"/' package.json`,
    'run: node --test',
    'fetch: https://cdn.timezones.example/zones.json',
    'say: All tests pass in UTC and in `Pacific/Auckland`. The list of zones could not be fetched, so I left it out.',
    'use: 420000',
  ],
  'search-order': [
    'Sort search results by relevance',
    "run: sed -i 's/=> hits;/=> hits * 2;/' src/search.ts",
    'use: 180000',
  ],
  'image-library': [
    'Replace the image library',
    'run: npm --version',
    'fetch: https://images.example/',
    'fail: the tests need a display',
  ],
};
const ASKS = [
  'Cache product pages for visitors who are not signed in',
  'say: Pages of products are the same for **everybody who is not signed in**. I look at what makes them, and at the cache that runs beside me.',
  'read: src/cart.ts',
  'read: src/search.ts',
  'run: redis-cli -h cache ping',
  'write: src/cache.ts export const seconds = 60;',
  'run: node --test',
  'fetch: https://metrics.example/report',
  'use: 90000',
  'ask: Should the cache be in Redis or in memory?',
  'wait: 600',
];
const RUNS = [
  'Add rate limiting to the login form',
  'read: src/cart.ts',
  'write: src/limit.ts export const limit = 5;',
  'run: sleep 600',
];

const ags = (...args) =>
  execFileSync(process.execPath, [join(root, 'bin/ags.cjs'), ...args], {
    cwd: project,
    env,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
  });
const git = (...args) =>
  execFileSync('git', ['-c', 'user.name=Dev', '-c', 'user.email=dev@example.test', ...args], { cwd: project, env });
const start = (name, parts, ...more) =>
  ags('start', name, parts.join('\n'), '--agent', 'demo', '--max-parallel', '8', ...more);
const state = (name) => JSON.parse(readFileSync(join(home, '.local/state/ags/tasks', name, 'run.json'), 'utf8')).state;

async function until(name, ...states) {
  for (let left = 600; !states.includes(state(name)); left -= 1) {
    if (left === 0) throw new Error(`${name} is ${state(name)}`);
    await sleep(100);
  }
}

async function tasks() {
  for (const [path, text] of Object.entries(FILES)) {
    mkdirSync(dirname(join(project, path)), { recursive: true });
    writeFileSync(join(project, path), text);
  }
  git('init', '-q', '-b', 'main');
  git('add', '-A');
  git('commit', '-qm', 'A small shop');
  for (const [name, parts] of Object.entries(TASKS)) {
    try {
      start(name, parts);
    } catch {
      // A failing task has another exit code; `until` checks its state.
    }
    await until(name, 'ready', 'failed');
  }
  ags('merge', 'update-readme', '--yes', '--check');
  // Checks the review's default selection: all files except risky ones.
  ags('check', 'date-tests');
  start('cache-pages', ASKS, '--detach');
  await until('cache-pages', 'needs-you');
  start('login-limit', RUNS, '--detach');
  // A busy machine may queue it, which is fine in a picture.
  await until('login-limit', 'running', 'queued');
}

async function pictures(link) {
  const browser = await chromium.launch({
    executablePath: process.env.AGS_CHROMIUM ?? '/usr/bin/chromium',
    args: ['--no-sandbox', '--disable-gpu', '--font-render-hinting=none'],
  });
  const enter = await browser.newContext();
  const first = await enter.newPage();
  await first.goto(link);
  await first.getByText('Cache product pages').first().waitFor();
  const tasksAt = first.url();
  const cookies = await enter.cookies();
  const shots = {
    tasks: [
      tasksAt,
      (page) => page.getByText('Should the cache be in Redis').filter({ visible: true }).first().waitFor(),
    ],
    task: [`${tasksAt}/t/cache-pages`, task],
    review: [`${tasksAt}/t/date-tests/changes`, review],
  };
  for (const colorScheme of ['light', 'dark'])
    for (const [name, [url, there]] of Object.entries(shots)) {
      const context = await browser.newContext({
        viewport: { width: 1440, height: 900 },
        colorScheme,
        reducedMotion: 'reduce',
      });
      await context.addCookies(cookies);
      const page = await context.newPage();
      await page.goto(url);
      await there(page);
      await page.evaluate(() => document.fonts.ready);
      const path = join(out, `${name}-${colorScheme}.png`);
      const { length } = await page.screenshot({ path });
      if (length > MOST_BYTES) throw new Error(`${path} has ${length} bytes, more than ${MOST_BYTES}`);
      process.stdout.write(`${path} ${length}\n`);
      await context.close();
    }
  await browser.close();
}

async function task(page) {
  await page.getByText('The agent asks').waitFor();
  await page.locator('[data-service=db]').getByText('healthy').waitFor();
}

async function review(page) {
  await page.getByText(/Merges cleanly onto/).waitFor();
  await page.getByRole('treeitem', { name: 'date.ts' }).click();
  await page.getByText('setUTCHours').waitFor();
  await page.getByText('Checks passed').waitFor();
  await page.getByText(/Merges cleanly onto/).waitFor();
}

mkdirSync(out, { recursive: true });
let server;
try {
  await tasks();
  server = spawn(process.execPath, [join(root, 'bin/ags.cjs'), 'serve', '--port', '0'], {
    cwd: project,
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const link = await new Promise((resolve) =>
    server.stdout.once('data', (line) => resolve(String(line).split('\n')[0])),
  );
  await pictures(link);
} finally {
  server?.kill();
  for (const name of ['cache-pages', 'login-limit'])
    try {
      ags('rm', name, '--force', '--yes');
    } catch {
      // It never began.
    }
  rmSync(home, { recursive: true, force: true });
}
