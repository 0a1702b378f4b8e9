// test/conformance/docker.full.test.ts: a container keeps every promise; for an ordinary user who may use the engine as for root, where it differs:
// what is mounted, who owns it, and the limits.
import { expect, test } from 'vitest';
import { AGAIN, ALSO_AS_USER, runAgain } from './again.ts';
import { openDocker } from './docker-backend.ts';
import { doorPromises } from './listeners.ts';
import { HAS_ENGINE } from './engine.ts';
import { filePromises } from './files.ts';
import { limitPromises } from './limits.ts';
import { CALLER, RUNNER } from './place.ts';
import { backendConformance } from './suite.ts';

// Of an ordinary user's; and a runner that is killed is this file once more.
const isAgain = process.env[AGAIN] !== undefined;
const isRunner = process.env[RUNNER.word] !== undefined;
if (HAS_ENGINE && isAgain && !isRunner) {
  filePromises(openDocker);
  limitPromises(openDocker);
} else if (HAS_ENGINE) {
  backendConformance(`docker, as ${CALLER}`, openDocker);
  if (!isRunner) doorPromises(openDocker);
}

if (HAS_ENGINE && ALSO_AS_USER && !isRunner) {
  test('an ordinary user who may use the engine is promised the same', async () => {
    const mine = String(expect.getState().testPath);
    const again = { file: mine, uid: 42_424, group: 'docker', deadlineMs: 590_000 };
    const { passed, failed, other } = await runAgain(again);
    expect({ failed, other, enough: passed.length >= 20 }).toEqual({ failed: [], other: [], enough: true });
  }, 600_000);
}
if (!HAS_ENGINE) test.skip('no engine answers here', () => undefined);
