// scripts/ci.mjs: the CI run: `npm test`, then `npm run test:all` where every missing component is a failure, and one line of counts for both.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { addCounts, countsLine } from './select.mjs';
import { root } from './setup.mjs';

const PARTS = [
  { words: ['test'], env: {} },
  { words: ['run', 'test:all'], env: { AGS_REQUIRE_ALL: '1' } },
];
const dir = mkdtempSync(join(tmpdir(), 'ags-ci-'));
const counts = PARTS.map(({ words, env }, i) => {
  const file = join(dir, String(i));
  const all = { ...process.env, ...env, CI: '1', AGS_TEST_COUNTS: file };
  const { status } = spawnSync('npm', [...words, '--silent'], { cwd: root, stdio: 'inherit', env: all });
  const one = countsIn(file);
  // A part without counts, or with an unexplained failure, has failed.
  return status === 0 || one.failed > 0 ? one : { ...one, failed: 1 };
});
rmSync(dir, { recursive: true, force: true });
const sum = addCounts(counts);
process.stdout.write(`${countsLine(sum)}\n`);
process.exitCode = sum.failed === 0 ? 0 : 1;

function countsIn(file) {
  try {
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch {
    return { passed: 0, failed: 1, skipped: 0 };
  }
}
