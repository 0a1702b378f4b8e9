// scripts/mutate.mjs: removes each protection of mutations.mjs, one at a time, in a copy, and reports the test that notices.
//   node scripts/mutate.mjs             all of them
//   node scripts/mutate.mjs cookie CSP  those with such a word in their name
// A protection that no test misses is a failure: it is useless or untested.
import { spawnSync } from 'node:child_process';
import { chmodSync, cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findTests, openSource } from './anchors.mjs';
import { MUTATIONS } from './mutations.mjs';
import { root, setUp } from './setup.mjs';

await setUp();
const copy = mkdtempSync(join(tmpdir(), 'ags-mutant-'));
for (const name of [
  'src',
  'web',
  'test',
  'scripts',
  'bin',
  'docs',
  'dist',
  'package.json',
  'package-lock.json',
  'tsconfig.json',
  'vitest.config.ts',
])
  cpSync(join(root, name), join(copy, name), { recursive: true });
symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'));
// Sandbox tests also run as another user, and the code of a mutant may have type errors.
chmodSync(copy, 0o755);
const settings = JSON.parse(readFileSync(join(root, 'tsconfig.json'), 'utf8'));
settings.compilerOptions.noCheck = true;
writeFileSync(join(copy, 'tsconfig.json'), JSON.stringify(settings));

const words = process.argv.slice(2);
const source = openSource(copy);
let unnoticed = 0;
try {
  for (const { name, piece, tests } of MUTATIONS.filter(
    (one) => words.length === 0 || words.some((word) => one.name.includes(word)),
  )) {
    const edited = source.edit([piece]);
    for (const [path, text] of edited) writeFileSync(join(copy, path), text);
    run('scripts/build.mjs');
    const missed = tests.map(failing).find((one) => one.length > 0) ?? [];
    for (const path of edited.keys()) writeFileSync(join(copy, path), source.read(path));
    if (missed.length === 0) unnoticed += 1;
    process.stdout.write(
      `${missed.length > 0 ? 'missed' : 'UNNOTICED'}  ${name}\n${missed.map((test) => `          ${test}\n`).join('')}`,
    );
  }
} finally {
  rmSync(copy, { recursive: true, force: true });
}
process.exitCode = unnoticed === 0 ? 0 : 1;

function failing(test) {
  const out = join(copy, 'result.json');
  // The result of the test before must not count for one that did not end.
  rmSync(out, { force: true });
  run(
    'node_modules/vitest/vitest.mjs',
    'run',
    ...findTests(copy, test),
    '--reporter=json',
    `--outputFile=${out}`,
    '--bail=3',
  );
  const { testResults } = JSON.parse(readFileSync(out, 'utf8'));
  return testResults.flatMap(({ assertionResults, message }) => {
    const failed = assertionResults.filter(({ status }) => status === 'failed').map(({ fullName }) => fullName);
    return failed.length > 0 || message === '' ? failed : [message];
  });
}

function run(...args) {
  const env = { ...process.env, AGS_TEST_CALLERS: 'all' };
  spawnSync(process.execPath, args, { cwd: copy, env, stdio: 'ignore', timeout: 900_000 });
}
