// scripts/test.mjs: `npm test`: set up, build, check, test, and end with one plain line of counts.
// Arguments are passed on to vitest: npm test -- test/review/lanes.test.ts
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { join, relative } from 'node:path';
import { startEngine } from './engine.mjs';
import { NEEDED, root, setUp } from './setup.mjs';

// Real clients and servers: what a sandbox reaches through its gateway is tried with them.
const CLIENTS = ['gcc', 'curl', 'wget', 'openssl', 'python3', 'psql', 'javac', 'keytool'];
const SERVERS = ['redis-server', 'mariadbd', 'nats-server', 'rabbitmq-server', 'memcached', 'sshd'];

// A clone that is itself below /tmp is shown again where it was: the working directory still leads to it, and only to whom does not
// make a path of it first (-c).
const IN_MEMORY = [
  'mount -t tmpfs -o mode=1777,size=12g tmpfs /tmp',
  'case "$0" in /tmp/*) mkdir -p "$0" && mount -c --rbind . "$0" && cd "$0" ;; esac',
  'exec "$@"',
].join(' && ');

const REPORTERS = ['--reporter=default', `--reporter=${join(root, 'scripts/test-report.mjs')}`];
// More than these are no accident.
const MOST_AGAIN = 12;

await setUp({
  programs: [
    ...NEEDED,
    'tmux',
    'chromium',
    'dockerd',
    'docker-compose',
    'podman',
    'newuidmap',
    'docker-registry',
    'busybox',
    ...CLIENTS,
    ...SERVERS,
  ],
});
// Before /tmp becomes the tests' own: the engine has the file systems of this machine.
const stopEngine = await startEngine();
const some = process.argv.slice(2);
const checks =
  some.length > 0
    ? 0
    : (spawnSync(process.execPath, [join(root, 'scripts/check.mjs')], { cwd: root, stdio: 'inherit' }).status ?? 1);
const dir = mkdtempSync('/var/tmp/ags-test-');
const inMemory = canBeInMemory();
const failures = [];
const all = runTests(some);
const again = all.files.filter(({ failed }) => failed > 0).map(({ file }) => file);
// A machine shared with others starves a process now and then. What fails from the start and alone as well is broken.
if (some.length === 0 && again.length > 0 && again.length <= MOST_AGAIN) {
  process.stdout.write(
    `test: once more, one at a time:\n${again.map((file) => `  ${relative(root, file)}\n`).join('')}`,
  );
  const second = runTests(['--maxWorkers=1', ...again]);
  all.homeless += second.homeless;
  all.files = [...all.files.filter(({ file }) => !again.includes(file)), ...second.files];
}
await stopEngine?.();
const slowest = all.files.toSorted((a, b) => b.seconds - a.seconds).slice(0, 12);
process.stdout.write(
  `test: slowest: ${slowest.map((one) => `${relative(root, one.file)} ${one.seconds} s`).join(', ')}\n`,
);
// At the end, where who reads only that sees what to look at.
for (const { name, file } of failures) process.stdout.write(`test: failed in ${relative(root, file)}: ${name}\n`);
rmSync(dir, { recursive: true, force: true });
const sum = (what) => all.files.reduce((total, one) => total + one[what], 0);
const failed = sum('failed') + all.homeless + (checks === 0 ? 0 : 1);
process.stdout.write(`${sum('passed')} passed, ${failed} failed, ${sum('skipped')} skipped\n`);
process.exitCode = failed === 0 ? 0 : 1;

/** What came of each file; a run that ends without saying so has failed. */
function runTests(args) {
  const report = join(dir, 'report.json');
  rmSync(report, { force: true });
  const vitest = [process.execPath, join(root, 'node_modules/vitest/vitest.mjs'), 'run', ...REPORTERS, ...args];
  const [program, ...rest] = inMemory ? ['unshare', '--mount', 'sh', '-c', IN_MEMORY, root, ...vitest] : vitest;
  const env = { ...process.env, AGS_TEST_REPORT: report };
  const { status } = spawnSync(program, rest, { cwd: root, stdio: 'inherit', env });
  try {
    const { files, homeless } = JSON.parse(readFileSync(report, 'utf8'));
    failures.push(...files.flatMap(({ file, names }) => names.map((name) => ({ file, name }))));
    const isTold = homeless > 0 || files.some(({ failed }) => failed > 0);
    return { files, homeless: status === 0 || isTold ? homeless : 1 };
  } catch {
    return { files: [], homeless: 1 };
  }
}

/**
 * Thousands of small projects are made and removed, which takes a disk longer than everything that is tested with them. What is about
 * disks itself is in /var/tmp.
 */
function canBeInMemory() {
  const seen = ['test', '-f', join(root, 'package.json')];
  const tried = spawnSync('unshare', ['--mount', 'sh', '-c', IN_MEMORY, root, ...seen], { cwd: root, stdio: 'ignore' });
  const can = tried.status === 0;
  if (can) process.stdout.write('test: /tmp is in memory for the tests, and theirs alone\n');
  return can;
}
