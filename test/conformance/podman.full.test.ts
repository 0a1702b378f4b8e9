// test/conformance/podman.full.test.ts: Podman containers pass the conformance suite: an ordinary user's all of it, root's the parts
// that differ: mounts, ownership and limits.
import { userInfo } from 'node:os';
import { expect, test } from 'vitest';
import { findEngine } from '../../src/sandbox/engine/find-engine.ts';
import { createPodmanUser, HAS_PODMAN } from '../sandbox/podman-user.ts';
import { ALSO_AS_USER, runAgain } from './again.ts';
import { listenerPromises } from './listeners.ts';
import { openEngine } from './engine-backend.ts';
import { filePromises } from './files.ts';
import { limitPromises } from './limits.ts';
import { CALLER, RUNNER } from './place.ts';
import { backendConformance } from './suite.ts';

const OWN = { root: ['sys', 'etc', 'run'], etc: ['hostname', 'hosts', 'mtab'] };

if (HAS_PODMAN && (CALLER === 'user' || process.env[RUNNER.word] !== undefined)) {
  const open = openPodman();
  backendConformance('podman, as user', open);
  if (process.env[RUNNER.word] === undefined) listenerPromises(open);
}

if (HAS_PODMAN && CALLER === 'root' && process.env[RUNNER.word] === undefined) {
  filePromises(openPodman());
  limitPromises(openPodman());
}

if (HAS_PODMAN && ALSO_AS_USER) {
  test('containers of an ordinary user pass as well', async () => {
    using user = createPodmanUser('ags-conformance');
    const mine = String(expect.getState().testPath);
    const { passed, failed, other } = await runAgain({ file: mine, uid: user.uid, env: user.env, deadlineMs: 590_000 });
    expect({ failed, other, enough: passed.length >= 40 }).toEqual({ failed: [], other: [], enough: true });
  }, 600_000);
}
if (!HAS_PODMAN) test.skip('Podman is not installed here', () => undefined);

function openPodman(): ReturnType<typeof openEngine> {
  const { uid, username: userName } = userInfo();
  const engine = findEngine('podman', { env: process.env, uid, userName }, true);
  if (engine === null) throw new Error('no engine');
  return openEngine(engine, OWN);
}
