// scripts/faults.mjs: `npm run faults`: hundreds of rounds with faults (test/faults). `npm run faults -- 500` sets the number. Each run has a
// new seed and prints it: AGS_FAULT_SEED=<seed> repeats its choices.
import { spawnSync } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { join } from 'node:path';
import { startEngine } from './engine.mjs';
import { NEEDED, root, setUp } from './setup.mjs';

const rounds = process.argv[2] ?? process.env.AGS_FAULT_ROUNDS ?? '300';
if (!/^[1-9]\d*$/.test(rounds)) {
  process.stderr.write(`faults: how many rounds? Not "${rounds}".\n`);
  process.exit(2);
}
await setUp({ programs: [...NEEDED, 'curl', 'dockerd', 'redis-server'] });
const stopEngine = await startEngine();
const seed = process.env.AGS_FAULT_SEED ?? String(randomInt(1_000_000));
process.stdout.write(`faults: ${rounds} rounds, AGS_FAULT_SEED=${seed}\n`);
const { status } = spawnSync(
  process.execPath,
  [join(root, 'node_modules/vitest/vitest.mjs'), 'run', 'test/faults/faults.proof.test.ts'],
  {
    cwd: root,
    stdio: 'inherit',
    env: { ...process.env, AGS_TEST_CALLERS: 'all', AGS_FAULT_ROUNDS: rounds, AGS_FAULT_SEED: seed },
  },
);
await stopEngine?.();
process.exitCode = status ?? 1;
