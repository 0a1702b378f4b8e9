// scripts/soak.mjs: `npm run soak -- --minutes 60 --parallel 20`: runs tasks in parallel in a loop and looks for growth and leftovers. Results go
// to bench/results/soak.json; `npm run bench -- soak` adds them to docs/reference/benchmarks.md. --dry writes nothing. Exits with 1 if a bound is
// exceeded.
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
const { createFixture } = await import('../bench/fixture.mjs');

const fixture = createFixture(root, null, true);
// Removes everything on any exit.
process.on('exit', () => fixture[Symbol.dispose]());
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => process.exit(1));
// A hundred samples for any duration.
const section = await benchSoak(fixture, { minutes, parallel, everyMs: Math.max(500, minutes * 600) });
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
