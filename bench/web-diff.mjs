// bench/web-diff.mjs: what the review costs a browser: changes of 5,000 and 50,000 lines by a task of a real `ags serve`, opened in
// the system's Chromium. CPU time of the page's main thread is what counts; wall time says how busy the machine was.
//   node bench/web-diff.mjs            prints the figures, and fails where one is above its bar
import { spawn, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { chromium } from 'playwright-core';

const AGS = fileURLToPath(new URL('../bin/ags', import.meta.url));
const SIZES = [
  { name: 'small', lines: 5_000, files: 110, cpuSeconds: 0.8, nodes: 5_000, heapMb: 80 },
  { name: 'large', lines: 50_000, files: 220, cpuSeconds: 1.5, nodes: 5_000, heapMb: 80 },
];
const QUIET_MS = 1_500;
const ROUNDS = 3;

const dir = mkdtempSync(join(tmpdir(), 'ags-web-diff-'));
const children = [];
try {
  const results = [];
  const { env, project } = makeProject();
  for (const size of SIZES) await startTask(env, project, size);
  const link = await serve(env, project);
  const browser = await chromium.launch({
    executablePath: process.env.AGS_CHROMIUM ?? '/usr/bin/chromium',
    args: ['--no-sandbox', '--disable-gpu'],
  });
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 } });
  await (await context.newPage()).goto(link);
  const { origin } = new URL(link);
  const { projects } = await (await context.request.get(`${origin}/api/projects`)).json();
  for (const size of SIZES)
    for (let round = 0; round < ROUNDS; round += 1)
      results.push({ size, ...(await look(context, `${origin}/p/${projects[0].id}/t/${size.name}/changes`)) });
  await browser.close();
  report(results);
} finally {
  for (const child of children) child.kill();
  rmSync(dir, { recursive: true, force: true });
}

function makeProject() {
  const project = join(dir, 'project');
  const home = join(dir, 'home');
  mkdirSync(join(project, 'src'), { recursive: true });
  mkdirSync(home);
  const env = { PATH: process.env.PATH, HOME: home, XDG_STATE_HOME: join(dir, 'state'), LANG: 'C.UTF-8' };
  for (const { name, lines, files } of SIZES)
    for (let n = 0; n < files; n += 1)
      writeFileSync(join(project, `src/${name}-${n}.ts`), source(lines / files, 'before'));
  const git = (...args) =>
    spawnSync('git', ['-c', 'user.name=Dev', '-c', 'user.email=dev@example.test', ...args], { cwd: project, env });
  git('init', '-qb', 'main');
  git('add', '-A');
  git('commit', '-qm', 'first');
  return { env, project };
}

/** Functions of eight lines; half of what is shown of them is changed, the rest stands around it. */
function source(shown, word) {
  return Array.from({ length: Math.ceil(shown / 8) }, (_, i) =>
    [
      `/** Part ${i} of the calculation. */`,
      `export function part${i}(items: readonly number[], options: { limit: number }): string {`,
      `  const chosen = items.filter((item) => item > options.limit + ${i}); // ${word}`,
      `  if (chosen.length === 0) return 'nothing of ${word}';`,
      '  const sum = chosen.reduce((total, item) => total + item, 0);',
      `  return \`${word} \${sum} of \${chosen.length}\`;`,
      '}',
      '',
    ].join('\n'),
  ).join('\n');
}

async function startTask(env, project, { name }) {
  const script = `cat >/dev/null; sed -i 's/before/after/g' src/${name}-*.ts`;
  const done = spawnSync(AGS, ['start', name, 'change it', '--agent', `sh -c "${script}"`], {
    cwd: project,
    env,
    encoding: 'utf8',
    timeout: 120_000,
  });
  if (done.status !== 0) throw new Error(done.stderr);
}

function serve(env, project) {
  const child = spawn(AGS, ['serve', '--port', '0'], { cwd: project, env });
  children.push(child);
  return new Promise((resolve, reject) => {
    let text = '';
    child.once('close', () => reject(new Error(`the server ended: ${text}`)));
    child.stderr.on('data', (chunk) => (text += chunk));
    child.stdout.on('data', (chunk) => {
      text += chunk;
      if (text.includes('\n')) resolve(text.slice(0, text.indexOf('\n')));
    });
  });
}

/** Opens it in a page of its own, and waits until its main thread has had nothing to do for a while. */
async function look(context, url) {
  const page = await context.newPage();
  const cdp = await context.newCDPSession(page);
  await cdp.send('Performance.enable', { timeDomain: 'threadTicks' });
  const began = performance.now();
  await page.goto(url);
  await page.locator('[data-line]').first().waitFor();
  const paintedMs = performance.now() - began;
  let metrics = await read(cdp);
  for (let quietSince = performance.now(); performance.now() - quietSince < QUIET_MS;) {
    await page.waitForTimeout(250);
    const next = await read(cdp);
    if (next.TaskDuration - metrics.TaskDuration > 0.02) quietSince = performance.now();
    metrics = next;
  }
  const nodes = await page.evaluate(() => {
    const count = (root) =>
      [...root.querySelectorAll('*')].reduce(
        (sum, one) => sum + 1 + (one.shadowRoot === null ? 0 : count(one.shadowRoot)),
        0,
      );
    return count(document);
  });
  const frames = await scroll(page);
  await page.close();
  return { paintedMs, cpuSeconds: metrics.TaskDuration, nodes, heapMb: metrics.JSHeapUsedSize / 2 ** 20, frames };
}

async function read(cdp) {
  const { metrics } = await cdp.send('Performance.getMetrics');
  return Object.fromEntries(metrics.map(({ name, value }) => [name, value]));
}

/** How long frames take while it is scrolled: the 95th of a hundred. */
function scroll(page) {
  return page.evaluate(async () => {
    const box = document.querySelector('.diff-view');
    const times = [];
    let last = await new Promise(requestAnimationFrame);
    for (let i = 0; i < 60; i += 1) {
      box.scrollTop += 180;
      const now = await new Promise(requestAnimationFrame);
      times.push(now - last);
      last = now;
    }
    return times.sort((a, b) => a - b)[Math.floor(times.length * 0.95)];
  });
}

function report(results) {
  let bad = false;
  for (const size of SIZES) {
    const of = (what) => {
      const values = results.filter((one) => one.size === size).map((one) => one[what]);
      return values.sort((a, b) => a - b)[Math.floor(values.length / 2)];
    };
    const all = (what) =>
      results
        .filter((one) => one.size === size)
        .map((one) => one[what].toFixed(2))
        .join(', ');
    const line = [
      `${size.lines} lines in ${size.files} files:`,
      `CPU ${of('cpuSeconds').toFixed(2)} s (bar ${size.cpuSeconds}; ${all('cpuSeconds')})`,
      `nodes ${of('nodes')} (bar ${size.nodes})`,
      `heap ${of('heapMb').toFixed(0)} MB (bar ${size.heapMb})`,
      `first lines after ${(of('paintedMs') / 1000).toFixed(1)} s`,
      `scroll p95 ${of('frames').toFixed(0)} ms`,
    ];
    console.log(line.join('  '));
    bad ||= ['cpuSeconds', 'nodes', 'heapMb'].some((what) => of(what) > size[what]);
  }
  if (bad) process.exitCode = 1;
}
