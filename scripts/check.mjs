// scripts/check.mjs: checks the source without running it.
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { root } from './setup.mjs';

const bin = (name) => join(root, 'node_modules/.bin', name);
const checks = [
  ['types', [bin('tsc'), '--noEmit', '-p', root]],
  ['types of the tests', [bin('tsc'), '--noEmit', '-p', join(root, 'test')]],
  ['types of the page', [bin('tsc'), '--noEmit', '-p', join(root, 'web')]],
  ['lint', [bin('oxlint'), '--type-aware', 'src', 'test', 'scripts', 'bin', 'bench', 'web']],
  ['format', [bin('oxfmt'), '--check', 'src', 'test', 'scripts', 'bin', 'bench', 'web']],
  ['perl', [process.execPath, join(root, 'scripts/check-perl.mjs')]],
  ['unused code', [bin('knip')]],
  ['package', [bin('publint'), '--strict']],
];
let failed = 0;
for (const [name, [program, ...args]] of checks) {
  const done = spawnSync(program, args, { cwd: root, encoding: 'utf8' });
  process.stdout.write(`check: ${name.padEnd(20)} ${done.status === 0 ? 'ok' : 'FAILED'}\n`);
  if (done.status === 0) continue;
  failed += 1;
  process.stdout.write(`${done.stdout}${done.stderr}\n`);
}
process.exitCode = failed === 0 ? 0 : 1;
