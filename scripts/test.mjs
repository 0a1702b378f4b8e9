// scripts/test.mjs: sets up, builds, checks, runs tests, and ends with one plain line of counts.
//   npm test                        the core (x.test.ts), as one caller; installs only npm packages and what a sandbox needs
//   npm run test:all                the rest (x.full.test.ts): engines, servers, browser, agents, the other caller; installs what it needs
//   npm run test:proof              mutation, faults and soak (x.proof.test.ts), then `npm run mutate`; the result is kept in test/proof.json
//   npm test -- test/review/lanes.test.ts  files of any tier; set-up does no more than they need. Options are passed on to vitest.
import { spawnSync } from 'node:child_process';
import { appendFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { engineAnswers, startEngine } from './engine.mjs';
import { lowPorts } from './low-ports.mjs';
import { allTestFiles, describeFile, isInstalled, programsOf } from './needs.mjs';
import { whyNoSandbox } from './sandbox-works.mjs';
import { addCounts, countsLine, selectFiles, skipLines, splitArgs } from './select.mjs';
import { root, setUp } from './setup.mjs';
import { enterOwnTmp, TEST_USER } from './own-tmp.mjs';

const REPORTERS = ['--reporter=default', `--reporter=${join(root, 'scripts/test-report.mjs')}`];
// More failures than this are not accidents of a busy machine.
const MOST_AGAIN = 12;
const PROOF = join(root, 'test/proof.json');

const started = Date.now();
const say = (text) => process.stdout.write(`test: ${text}\n`);
const isRoot = process.getuid() === 0;
const [tier, ...args] = process.argv[2] === '--tier' ? process.argv.slice(3) : ['core', ...process.argv.slice(2)];
const all = allTestFiles();
const { named, options, unknown } = splitArgs(args, all);
if (unknown.length > 0) {
  say(`no test file matches ${unknown.join(', ')}`);
  process.exit(2);
}
const isWhole = named.length === 0 && options.length === 0;
const chosen = selectFiles(all.map(describeFile), { tier, named, isRoot });
const wanted = [...new Set(chosen.flatMap(({ needs, uses }) => [...needs, ...uses]))];
// `npm test` installs only requirements of a sandbox, unless a file of another tier is named.
const mayInstall = tier !== 'core' || chosen.some((one) => one.tier !== 'core');

await setUp({
  programs: ['git'],
  optional: programsOf(mayInstall ? wanted : wanted.filter((name) => name === 'sandbox')),
});
const noSandbox = wanted.includes('sandbox') ? whyNoSandbox(isRoot ? TEST_USER : undefined) : null;
if (noSandbox !== null) say(noSandbox);
// Before the tests get their own /tmp: Docker's daemon sees the machine's file systems.
const stopEngine = mayInstall && wanted.includes('docker') ? await startEngine() : null;
const withLowPorts = wanted.includes('low-ports') ? lowPorts() : [];
const absent = new Set(wanted.filter((name) => !isThere(name)));
const leftOut = chosen.flatMap(({ file, needs }) => {
  const missing = needs.filter((name) => absent.has(name));
  return missing.length > 0 ? [{ file, missing }] : [];
});
const files = chosen.map(({ file }) => file).filter((file) => !leftOut.some((one) => one.file === file));

const checked = tier !== 'core' || !isWhole || run(['scripts/check.mjs']) === 0;
const dir = mkdtempSync('/var/tmp/ags-test-');
const failures = [];
const results = runTests(files);
const again = results.files.filter(({ failed }) => failed > 0).map(({ file }) => file);
const flaky = [];
// A busy machine may starve a process now and then. A test that fails again, alone, is broken.
if (isWhole && again.length > 0 && again.length <= MOST_AGAIN) {
  say(`once more, one at a time:\n${again.map((file) => `  ${file}\n`).join('')}`);
  const first = failures.splice(0);
  const second = runTests(again, ['--maxWorkers=1']);
  const isBroken = ({ file, name }) => failures.some((one) => one.file === file && one.name === name);
  flaky.push(...first.filter((one) => !isBroken(one)));
  results.homeless += second.homeless;
  results.files = [...results.files.filter(({ file }) => !again.includes(file)), ...second.files];
}
await stopEngine?.();
const mutants = tier === 'proof' && isWhole ? mutate() : { missed: 0, unnoticed: 0 };
rmSync(dir, { recursive: true, force: true });
close();

function close() {
  const slowest = results.files.toSorted((a, b) => b.seconds - a.seconds).slice(0, 12);
  say(`slowest: ${slowest.map((one) => `${one.file} ${one.seconds} s`).join(', ')}`);
  const untried = results.files.flatMap(({ file, notes }) =>
    notes.flatMap((why) => (why === null && !isWhole ? [] : [{ file, why: why ?? reason(file) }])),
  );
  for (const line of skipLines(leftOut, untried)) say(line);
  for (const { name, file } of flaky) say(`flaky: ${file}: ${name}`);
  for (const { name, file } of failures) say(`failed in ${file}: ${name}`);
  if (noSandbox !== null) say(noSandbox);
  const isStrict = process.env.AGS_REQUIRE_ALL !== undefined;
  const counts = addCounts([
    ...results.files,
    { passed: 0, failed: results.homeless + (checked ? 0 : 1), skipped: 0 },
    { passed: mutants.missed, failed: mutants.unnoticed, skipped: 0 },
    { passed: 0, failed: isStrict ? leftOut.length : 0, skipped: isStrict ? 0 : leftOut.length },
  ]);
  if (tier === 'proof' && isWhole) keepProof(counts);
  say(`took ${Math.round((Date.now() - started) / 1000)} s`);
  // scripts/ci.mjs adds the counts of several runs and prints the sum.
  const { AGS_TEST_COUNTS } = process.env;
  if (AGS_TEST_COUNTS === undefined) process.stdout.write(`${countsLine(counts)}\n`);
  else appendFileSync(AGS_TEST_COUNTS, `${JSON.stringify(counts)}\n`);
  process.exitCode = counts.failed === 0 && noSandbox === null ? 0 : 1;
}

/** For tests skipped without a note. */
function reason(file) {
  const { uses } = chosen.find((one) => one.file === file) ?? { uses: [] };
  const missing = uses.find((name) => absent.has(name));
  if (missing !== undefined) return `needs ${missing}`;
  return isRoot ? `in ${file}` : 'needs root';
}

function isThere(name) {
  if (name === 'sandbox') return noSandbox === null;
  if (name === 'low-ports') return withLowPorts !== null;
  return isInstalled(name) && (name !== 'docker' || engineAnswers());
}

/** Results by file. Files that need low ports run separately if those need a network namespace. */
function runTests(some, more = []) {
  const needsPorts = (file) => chosen.some((one) => one.file === file && one.needs.includes('low-ports'));
  const prefix = withLowPorts ?? [];
  if (prefix.length === 0) return runVitest(some, more);
  const [low, others] = [some.filter(needsPorts), some.filter((file) => !needsPorts(file))];
  const both = [runVitest(others, more), runVitest(low, more, prefix)];
  return { files: both.flatMap((one) => one.files), homeless: both.reduce((sum, one) => sum + one.homeless, 0) };
}

/** A run without results has failed. */
function runVitest(some, more, prefix = []) {
  if (some.length === 0) return { files: [], homeless: 0 };
  const report = join(dir, 'report.json');
  rmSync(report, { force: true });
  const vitest = [join(root, 'node_modules/vitest/vitest.mjs'), 'run', ...REPORTERS, ...options, ...more];
  const argv = [...prefix, process.execPath, ...vitest];
  const inMemory = enterOwnTmp(argv);
  // On a disk, tests wait for it more than for a processor.
  const [program, ...rest] = inMemory === argv && more.length === 0 ? [...argv, '--maxWorkers=5'] : inMemory;
  const callers = tier === 'core' ? 'one' : isWhole && tier === 'full' ? 'rest' : 'all';
  const env = { AGS_TEST_CALLERS: callers, ...process.env, AGS_TEST_REPORT: report, AGS_TEST_FILES: some.join('\n') };
  if (noSandbox !== null) env.AGS_TEST_NO_SANDBOX = '1';
  const { status } = spawnSync(program, rest, { cwd: root, stdio: 'inherit', env });
  try {
    const { files, homeless } = JSON.parse(readFileSync(report, 'utf8'));
    for (const one of files) one.file = relative(root, one.file);
    failures.push(...files.flatMap(({ file, names }) => names.map((name) => ({ file, name }))));
    const isTold = homeless > 0 || files.some(({ failed }) => failed > 0);
    return { files, homeless: status === 0 || isTold ? homeless : 1 };
  } catch {
    return { files: [], homeless: 1 };
  }
}

/** Removes protections one by one and counts those that a test missed and those that none did. */
function mutate() {
  const { stdout, status } = spawnSync(process.execPath, [join(root, 'scripts/mutate.mjs')], {
    cwd: root,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
    maxBuffer: 2 ** 26,
  });
  process.stdout.write(stdout);
  const count = (word) => stdout.split('\n').filter((line) => line.startsWith(`${word} `)).length;
  const unnoticed = count('UNNOTICED');
  return { missed: count('missed'), unnoticed: status === 0 || unnoticed > 0 ? unnoticed : 1 };
}

/** Stores the last result in the repository, with the commit that it proves. */
function keepProof(counts) {
  const git = (...words) => spawnSync('git', words, { cwd: root, encoding: 'utf8' }).stdout.trim();
  const isChanged = git('status', '--porcelain', '--', 'src', 'web', 'test', 'scripts') !== '';
  const commit = `${git('rev-parse', 'HEAD')}${isChanged ? ' with changes' : ''}`;
  const proof = { commit, date: new Date().toISOString().slice(0, 10), ...counts, mutants };
  writeFileSync(PROOF, `${JSON.stringify(proof, null, 2)}\n`);
  say(`written: ${relative(root, PROOF)}`);
}

function run(words) {
  return spawnSync(process.execPath, words, { cwd: root, stdio: 'inherit' }).status ?? 1;
}
