// scripts/mutate.mjs: takes each protection of mutations.mjs out, one at a time, in a copy, and shows which test misses it.
//   node scripts/mutate.mjs             all of them
//   node scripts/mutate.mjs cookie CSP  those with such a word in their name
// A protection that no test misses is a failure: it is useless, or nobody would notice that it is gone.
import { spawnSync } from 'node:child_process';
import { chmodSync, cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { MUTATIONS } from './mutations.mjs';
import { root } from './setup.mjs';

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
// Sandbox tests are run as another user too; and what is left of a mutant need not fit its types.
chmodSync(copy, 0o755);
const settings = JSON.parse(readFileSync(join(root, 'tsconfig.json'), 'utf8'));
settings.compilerOptions.noCheck = true;
writeFileSync(join(copy, 'tsconfig.json'), JSON.stringify(settings));

const words = process.argv.slice(2);
let unnoticed = 0;
try {
  for (const { name, file, from, to, tests } of MUTATIONS.filter(
    (one) => words.length === 0 || words.some((word) => one.name.includes(word)),
  )) {
    const source = readFileSync(join(copy, file), 'utf8');
    if (source.split(from).length !== 2) throw new Error(`${name}: ${file} is not as it was`);
    writeFileSync(
      join(copy, file),
      source.replace(from, () => to),
    );
    run('scripts/build.mjs');
    const missed = tests.map(failing).find((one) => one.length > 0) ?? [];
    writeFileSync(join(copy, file), source);
    if (missed.length === 0) unnoticed += 1;
    process.stdout.write(
      `${missed.length > 0 ? 'missed' : 'UNNOTICED'}  ${name}\n${missed.map((test) => `          ${test}\n`).join('')}`,
    );
  }
} finally {
  rmSync(copy, { recursive: true, force: true });
}
process.exitCode = unnoticed === 0 ? 0 : 1;

/** Names of the tests that fail. */
function failing(test) {
  const out = join(copy, 'result.json');
  run(
    'node_modules/vitest/vitest.mjs',
    'run',
    `test/${test}.test.ts`,
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
  spawnSync(process.execPath, args, { cwd: copy, stdio: 'ignore', timeout: 300_000 });
}
