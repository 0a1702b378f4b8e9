// test/conformance/native.test.ts: the bubblewrap backend passes the conformance suite, as root and as an ordinary user.
// needs: sandbox
import { expect, test } from 'vitest';
import { CALLERS, IS_ROOT } from '../harness.ts';
import { AGAIN, runAgain } from './again.ts';
import { openNative } from './native-backend.ts';
import { CALLER } from './place.ts';
import { backendConformance } from './suite.ts';

if (process.env[AGAIN] !== undefined || CALLERS.includes(CALLER))
  backendConformance(`native, as ${CALLER}`, (directory) => openNative(directory));

if (process.env[AGAIN] === undefined && IS_ROOT && CALLERS.includes('user')) {
  test('sandboxes of an ordinary user pass as well', async () => {
    const mine = String(expect.getState().testPath);
    const { passed, failed, other } = await runAgain({ file: mine, uid: 42_424 });
    expect({ failed, other, enough: passed.length >= 40 }).toEqual({ failed: [], other: [], enough: true });
  }, 310_000);
}
