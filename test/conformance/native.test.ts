// test/conformance/native.test.ts: the bubblewrap backend keeps every promise, for root and for an ordinary user.
import { release, totalmem } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { Backend } from '../../src/sandbox/backend.ts';
import { chooseStage, ensureWhiteout, inspectHost } from '../../src/sandbox/host.ts';
import { createNative } from '../../src/sandbox/native.ts';
import { CALLERS } from '../harness.ts';
import { runAgain } from './again.ts';
import { CALLER } from './place.ts';
import { backendConformance } from './suite.ts';

backendConformance(`native, as ${CALLER}`, async (directory): Promise<Backend> => {
  const uid = process.getuid?.() ?? 0;
  const stateDir = join(directory, '..', 'state');
  const host = await inspectHost({
    platform: process.platform,
    nodeArch: process.arch,
    uid,
    cacheDir: stateDir,
    runtimeDir: '',
    memoryBytes: totalmem(),
    kernel: release(),
  });
  const whiteout = await ensureWhiteout(stateDir);
  return {
    name: 'native',
    start: (spec, command, stdio) =>
      createNative({
        runDir: directory,
        whiteout,
        callerIsRoot: uid === 0,
        owner: { uid, gid: process.getgid?.() ?? 0 },
        arch: host.arch,
        programs: host.programs,
        stage:
          uid === 0 ? chooseStage(spec.mounts.flatMap((mount) => (mount.kind === 'bind' ? [mount.from] : []))) : '',
        overlays: true,
        limitHost: host.limitHost,
        cgroup: { files: [], prefix: [], env: {} },
        runMark: 'conformance',
      }).start(spec, command, stdio),
  };
});

if (CALLERS.length > 1) {
  test('an ordinary user is promised the same', async () => {
    const mine = String(expect.getState().testPath);
    const { passed, failed, other } = await runAgain({ file: mine, uid: 42_424 });
    expect({ failed, other, enough: passed.length >= 40 }).toEqual({ failed: [], other: [], enough: true });
  }, 310_000);
}
