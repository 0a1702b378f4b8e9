// scripts/test.mjs: `npm test`: set up, build, check, test, and end with one plain line of counts.
// Arguments are passed on to vitest: npm test -- test/lanes.test.ts
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { NEEDED, root, setUp } from './setup.mjs';

// Real clients and servers: what a sandbox reaches through its gateway is tried with them.
const CLIENTS = ['curl', 'wget', 'openssl', 'python3', 'psql', 'javac', 'keytool'];

const IN_MEMORY = 'mount -t tmpfs -o mode=1777,size=12g tmpfs /tmp && exec "$@"';

await setUp({ programs: [...NEEDED, 'tmux', 'chromium', ...CLIENTS] });
const some = process.argv.slice(2);
const checks =
  some.length > 0
    ? 0
    : (spawnSync(process.execPath, [join(root, 'scripts/check.mjs')], { cwd: root, stdio: 'inherit' }).status ?? 1);
const dir = mkdtempSync('/var/tmp/ags-test-');
const report = join(dir, 'report.json');
const vitest = [
  process.execPath,
  join(root, 'node_modules/vitest/vitest.mjs'),
  'run',
  '--reporter=default',
  '--reporter=json',
  `--outputFile.json=${report}`,
  ...some,
];
const [program, ...args] = inMemory() ? ['unshare', '--mount', 'sh', '-c', IN_MEMORY, 'sh', ...vitest] : vitest;
const tests = spawnSync(program, args, { cwd: root, stdio: 'inherit' });
const counts = readCounts();
rmSync(dir, { recursive: true, force: true });
process.stdout.write(
  `${counts.passed} passed, ${counts.failed + (checks === 0 ? 0 : 1)} failed, ${counts.skipped} skipped\n`,
);
process.exitCode = tests.status === 0 && checks === 0 ? 0 : 1;

/**
 * Thousands of small projects are made and removed, which takes a disk longer than everything that is tested with them. What is about
 * disks itself is in /var/tmp.
 */
function inMemory() {
  const can = spawnSync('unshare', ['--mount', 'sh', '-c', IN_MEMORY, 'sh', 'true'], { stdio: 'ignore' }).status === 0;
  if (can) process.stdout.write('test: /tmp is in memory for the tests, and theirs alone\n');
  return can;
}

function readCounts() {
  try {
    const result = JSON.parse(readFileSync(report, 'utf8'));
    return {
      passed: result.numPassedTests,
      failed:
        result.numFailedTests +
        result.testResults.filter((file) => file.status === 'failed' && file.assertionResults.length === 0).length,
      skipped: result.numPendingTests + result.numTodoTests,
    };
  } catch {
    return { passed: 0, failed: 1, skipped: 0 };
  }
}
