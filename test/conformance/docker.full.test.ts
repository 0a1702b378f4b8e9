// test/conformance/docker.full.test.ts: Docker containers pass the conformance suite; as an ordinary user with access to Docker, the parts that differ:
// mounts, ownership and limits.
import { expect, test } from 'vitest';
import { AGAIN, ALSO_AS_USER, runAgain } from './again.ts';
import { openDocker } from './docker-backend.ts';
import { listenerPromises } from './listeners.ts';
import { HAS_ENGINE } from './engine.ts';
import { filePromises } from './files.ts';
import { limitPromises } from './limits.ts';
import { CALLER, RUNNER } from './place.ts';
import { backendConformance } from './suite.ts';

// This file runs again as an ordinary user, and as the runner that a test kills.
const isAgain = process.env[AGAIN] !== undefined;
const isRunner = process.env[RUNNER.word] !== undefined;
if (HAS_ENGINE && isAgain && !isRunner) {
  filePromises(openDocker);
  limitPromises(openDocker);
} else if (HAS_ENGINE) {
  backendConformance(`docker, as ${CALLER}`, openDocker);
  if (!isRunner) listenerPromises(openDocker);
}

if (HAS_ENGINE && ALSO_AS_USER && !isRunner) {
  test('containers of an ordinary user with access to Docker pass as well', async () => {
    const mine = String(expect.getState().testPath);
    const again = { file: mine, uid: 42_424, group: 'docker', deadlineMs: 590_000 };
    const { passed, failed, other } = await runAgain(again);
    expect({ failed, other, enough: passed.length >= 20 }).toEqual({ failed: [], other: [], enough: true });
  }, 600_000);
}
if (!HAS_ENGINE) test.skip('Docker does not answer here', () => undefined);
