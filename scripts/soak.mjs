// scripts/soak.mjs: `npm run soak -- --minutes 60 --parallel 20`: tasks side by side in a loop, and whether anything grows or is left.
// What was seen goes to bench/results/soak.json; `npm run bench -- soak` puts it into docs/reference/benchmarks.md. With --dry nothing is written.
// Ends with 1 when a bound is crossed.
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { parseArgs } from 'node:util';
import { root, setUp } from './setup.mjs';

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '60' },
    parallel: { type: 'string', default: '20' },
    dry: { type: 'boolean', default: false },
  },
});
const minutes = positive('minutes', values.minutes);
const parallel = Math.ceil(positive('parallel', values.parallel));

await setUp();
const { benchSoak } = await import('../bench/soak.mjs');
const { terminalReport, verdict } = await import('../bench/report.mjs');
const { createWorld } = await import('../bench/world.mjs');

const world = createWorld(root, null, true);
// Whatever happens, nothing of it stays behind.
process.on('exit', () => world[Symbol.dispose]());
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => process.exit(1));
// A hundred looks, whatever the length.
const section = await benchSoak(world, { minutes, parallel, everyMs: Math.max(500, minutes * 600) });
process.stdout.write(`\n${terminalReport([section])}\n`);
if (!values.dry) {
  const file = join(root, 'bench/results/soak.json');
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, `${JSON.stringify(section, null, 2)}\n`);
  process.stdout.write('written: bench/results/soak.json\n');
}
if (section.check !== undefined) process.stdout.write(`${section.check}\n`);
if (section.bars.some((bar) => !verdict(bar))) process.exitCode = 1;

function positive(name, text) {
  const value = Number(text);
  if (value > 0) return value;
  process.stderr.write(`soak: --${name} takes a number above zero, not "${text}".\n`);
  process.exit(2);
}
