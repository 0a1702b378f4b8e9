// scripts/bench.mjs: `npm run bench`: ags beside what one would use instead, as ratios in one run. Writes
// docs/benchmarks.md and docs/benchmarks.svg; with --quick (under a minute, smaller repositories) it only prints.
// Ends with 1 when a bar is missed.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { root, setUp } from './setup.mjs';

await setUp();
const { drawChart } = await import('../bench/chart.mjs');
const { benchCrowd } = await import('../bench/crowd.mjs');
const { installPeers } = await import('../bench/peers.mjs');
const { describeMachine, load, markdownReport, terminalReport, verdict } = await import('../bench/report.mjs');
const { benchReview, benchScan } = await import('../bench/review.mjs');
const { benchStartUp } = await import('../bench/start-up.mjs');
const { benchStatus } = await import('../bench/status.mjs');
const { benchWorkspace, makeRepositories } = await import('../bench/workspace.mjs');
const { createWorld } = await import('../bench/world.mjs');

const quick = process.argv.includes('--quick');
const peers = installPeers(root);
const began = performance.now();
const before = load();
const sections = [];
const world = createWorld(root, peers.directory, quick);
// Whatever happens, a gigabyte of small files must not stay behind.
process.on('exit', () => world[Symbol.dispose]());
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => process.exit(1));
const machine = describeMachine(world, peers);
await measureAll();
const seconds = (performance.now() - began) / 1000;
process.stdout.write(
  `${terminalReport(sections)}\n\n${Math.round(seconds)} s, load ${before} before, ${load()} after\n`,
);
if (!quick) {
  writeFileSync(
    join(root, 'docs/benchmarks.md'),
    markdownReport({ sections, machine, loads: { before, after: load() }, seconds }),
  );
  writeFileSync(join(root, 'docs/benchmarks.svg'), drawChart(sections.flatMap((section) => section.chart ?? [])));
  process.stdout.write('written: docs/benchmarks.md, docs/benchmarks.svg\n');
}
for (const { check } of sections) if (typeof check === 'string') throw new Error(check);
if (sections.flatMap((section) => section.bars).some((bar) => !verdict(bar))) process.exitCode = 1;

async function measureAll() {
  const effort = (rounds, seconds) => (quick ? { rounds: 4, seconds: 5 } : { rounds, seconds });
  await stage('starting a sandbox', () => benchStartUp(world, effort(25, 25)));
  await stage('many at once', () =>
    benchCrowd(world, quick ? { sizes: [1, 10], srtSizes: [] } : { sizes: [1, 10, 50], srtSizes: [1, 10] }),
  );
  const repositories = await stage(
    'making repositories',
    () => makeRepositories(world, quick ? [1000, 3000] : [1000, 20_000, 100_000]),
    false,
  );
  const [small, middle, large = middle] = repositories;
  await stage('making a workspace', () =>
    benchWorkspace(world, repositories, {
      ...effort(25, 30),
      peerRounds: (files) => (quick || files > 10_000 ? 1 : 5),
    }),
  );
  await stage('git status', () => benchStatus(world, middle, effort(9, 15)));
  await stage('review', () =>
    benchReview(world, quick ? small : middle, {
      cases: quick
        ? [{ changes: 10, rounds: 1 }]
        : [
            { changes: 1, rounds: 5 },
            { changes: 100, rounds: 5 },
            { changes: 10_000, rounds: 1 },
          ],
    }),
  );
  await stage('scan', () => benchScan(world, large, effort(11, 10)));
}

async function stage(name, measure, isSection = true) {
  const started = performance.now();
  process.stderr.write(`bench: ${name} `);
  const result = await measure();
  if (isSection) sections.push(result);
  process.stderr.write(`(${Math.round((performance.now() - started) / 1000)} s)\n`);
  return result;
}
