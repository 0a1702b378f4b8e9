// scripts/bench.mjs: `npm run bench`: compares ags with its alternatives, as ratios in one run. Writes docs/reference/benchmarks.md and its
// charts; with --quick (under a minute, smaller repositories, no other proxies) it only prints.
// `npm run bench -- gateway` measures only the gateway (ten minutes) and replaces only its sections; so do `-- layers`, `-- tasks`,
// `-- services`, `-- backends` (native, docker and podman) and `-- page` (the server and the page in a browser). One part of the page
// (`-- page list`, `review`, `timeline`, `live` or `return`) and `-- from-inside` (connections from inside sandboxes) are only printed.
// `npm run bench -- soak` measures nothing: it adds the results of `npm run soak` to the page. Exits with 1 if a bar is missed.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { startEngine } from './engine.mjs';
import { ensurePrograms, root, setUp } from './setup.mjs';

await setUp();
const { drawChart } = await import('../bench/chart.mjs');
const { benchBackends } = await import('../bench/backends.mjs');
const { benchCrowd } = await import('../bench/crowd.mjs');
const { benchFromInsideAlone, benchGateway } = await import('../bench/gateway/bench.mjs');
const { GATEWAY } = await import('../bench/gateway/sections.mjs');
const { benchLayers } = await import('../bench/layers.mjs');
const { benchPage, PAGE, PAGE_EFFORT } = await import('../bench/page/bench.mjs');
const { installPeers } = await import('../bench/peers.mjs');
const { describeMachine, load, markdownReport, replaceSections, takeEarlier, terminalReport, verdict } =
  await import('../bench/report.mjs');
const { benchReview, benchScan } = await import('../bench/review.mjs');
const { SOAK } = await import('../bench/soak.mjs');
const { benchServices } = await import('../bench/services.mjs');
const { benchStartUp } = await import('../bench/start-up.mjs');
const { benchStatus } = await import('../bench/status.mjs');
const { benchTasks } = await import('../bench/tasks.mjs');
const { benchWorkspace, makeRepositories } = await import('../bench/workspace.mjs');
const { createFixture } = await import('../bench/fixture.mjs');

const quick = process.argv.includes('--quick');
const PARTS = {
  gateway: () => stage('the gateway', () => benchGateway(root, fixture, peers, gatewayEffort())),
  'from-inside': () => stage('from inside sandboxes', () => benchFromInsideAlone(fixture, peers, gatewayEffort())),
  backends: () => stage('backends', () => measureBackends()),
  layers: () => measureLayers(),
  tasks: () => measureTasks(),
  services: () => measureServices(),
  page: () => measurePage(),
  soak: () => readSoak(),
};
const part = Object.keys(PARTS).find((name) => process.argv.includes(name)) ?? null;
const pageParts = Object.keys(PAGE_EFFORT.full).filter((name) => process.argv.includes(name));
const peers = installPeers(root);
const began = performance.now();
const before = load();
const sections = [];
const fixture = createFixture(root, peers.directory, quick);
// Removes a gigabyte of small files on any exit.
process.on('exit', () => fixture[Symbol.dispose]());
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => process.exit(1));
const machine = describeMachine(fixture, peers);
if (part !== null) await PARTS[part]();
else await measureAll();
const seconds = (performance.now() - began) / 1000;
process.stdout.write(
  `${terminalReport(sections)}\n\n${Math.round(seconds)} s, load ${before} before, ${load()} after\n`,
);
if (!quick && part !== 'from-inside' && !(part === 'page' && pageParts.length > 0)) writePage();
for (const { check } of sections) if (typeof check === 'string') throw new Error(check);
if (sections.flatMap((section) => section.bars).some((bar) => !verdict(bar))) process.exitCode = 1;

function writePage() {
  const page = join(root, 'docs/reference/benchmarks.md');
  const isOfGateway = (section) => section.title.startsWith(GATEWAY.title);
  const names = part === 'gateway' ? GATEWAY : part === 'page' ? PAGE : {};
  const there = readFileSync(page, 'utf8');
  const earlier = sections.some(({ title }) => title === SOAK.title) ? undefined : takeEarlier(there, SOAK);
  const text =
    part === null
      ? markdownReport({ sections, machine, loads: { before, after: load() }, seconds, earlier })
      : replaceSections(there, { sections, ...names });
  writeFileSync(page, text);
  if (part !== null && part !== 'gateway') return void process.stdout.write('written: docs/reference/benchmarks.md\n');
  const charts = (list) => drawChart(list.flatMap((section) => section.chart ?? []));
  writeFileSync(join(root, 'docs/reference/benchmarks-gateway.svg'), charts(sections.filter(isOfGateway)));
  if (part === null)
    writeFileSync(
      join(root, 'docs/reference/benchmarks.svg'),
      charts(sections.filter((section) => !isOfGateway(section))),
    );
  process.stdout.write('written: docs/reference/benchmarks.md and its charts\n');
}

function gatewayEffort() {
  return quick ? { rounds: 3, seconds: 0.3, warmUp: 0.5 } : { rounds: 10, seconds: 0.7, warmUp: 3 };
}

async function measureBackends() {
  ensurePrograms(['dockerd', 'podman', 'newuidmap', 'psql', 'redis-server']);
  const stopEngine = await startEngine();
  try {
    return await benchBackends(fixture, quick ? { rounds: 2, crowds: [1, 5] } : { rounds: 9, crowds: [1, 20] });
  } finally {
    await stopEngine?.();
  }
}

async function measureLayers(made) {
  const sizes = quick ? [1000, 3000] : [1000, 10_000, 100_000];
  const repositories = made ?? (await stage('making repositories', () => makeRepositories(fixture, sizes), false));
  await stage('layers of an agent', () =>
    benchLayers(root, fixture, repositories, quick ? { rounds: 1, further: 5 } : { rounds: 3, further: 20 }),
  );
}

async function measureTasks(made) {
  const [repository] = made ?? (await stage('making a repository', () => makeRepositories(fixture, [1000]), false));
  const effort = quick
    ? { rounds: 2, megabytes: [1, 10], changes: [10, 100] }
    : { rounds: 9, megabytes: [10, 100, 1000], changes: [100, 1000, 10_000] };
  await stage('tasks of agents', () => benchTasks(fixture, repository, effort));
}

async function measureServices() {
  ensurePrograms(['psql', 'redis-server']);
  await stage('services', () =>
    benchServices(fixture, quick ? { rounds: 2, megabytes: [1, 20] } : { rounds: 7, megabytes: [1, 100, 1000] }),
  );
}

/** A soak takes an hour and runs separately; without a new result the page keeps the last one. */
function readSoak() {
  const file = join(root, 'bench/results/soak.json');
  if (existsSync(file)) sections.push(JSON.parse(readFileSync(file, 'utf8')));
}

async function measurePage() {
  const effort = quick ? PAGE_EFFORT.quick : PAGE_EFFORT.full;
  await stage('the page', () => benchPage(fixture, effort, pageParts.length > 0 ? pageParts : undefined));
}

async function measureAll() {
  const effort = (rounds, seconds) => (quick ? { rounds: 4, seconds: 5 } : { rounds, seconds });
  await stage('starting a sandbox', () => benchStartUp(fixture, effort(25, 25)));
  await stage('many at once', () =>
    benchCrowd(fixture, quick ? { sizes: [1, 10], srtSizes: [] } : { sizes: [1, 10, 50], srtSizes: [1, 10] }),
  );
  const repositories = await stage(
    'making repositories',
    () => makeRepositories(fixture, quick ? [1000, 3000] : [1000, 20_000, 100_000]),
    false,
  );
  const [small, middle, large = middle] = repositories;
  await stage('making a workspace', () =>
    benchWorkspace(fixture, repositories, {
      ...effort(25, 30),
      peerRounds: (files) => (quick || files > 10_000 ? 1 : 5),
    }),
  );
  await stage('git status', () => benchStatus(fixture, middle, effort(9, 15)));
  await stage('review', () =>
    benchReview(fixture, quick ? small : middle, {
      cases: quick
        ? [{ changes: 10, rounds: 1 }]
        : [
            { changes: 1, rounds: 5 },
            { changes: 100, rounds: 5 },
            { changes: 10_000, rounds: 1 },
          ],
    }),
  );
  await stage('scan', () => benchScan(fixture, large, effort(11, 10)));
  // Last, because it adds commits to the repositories.
  await measureLayers(repositories);
  await measureTasks(repositories);
  if (quick) return;
  for (const name of ['services', 'backends', 'gateway', 'page', 'soak']) await PARTS[name]();
}

async function stage(name, measure, isSection = true) {
  const started = performance.now();
  process.stderr.write(`bench: ${name} `);
  const result = await measure();
  if (isSection) sections.push(...[result].flat());
  process.stderr.write(`(${Math.round((performance.now() - started) / 1000)} s)\n`);
  return result;
}
