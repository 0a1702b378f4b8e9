// test/conformance/native.test.ts: the bubblewrap backend keeps every promise, for root and for an ordinary user.
import { expect, test } from 'vitest';
import { CALLERS } from '../harness.ts';
import { runAgain } from './again.ts';
import { openNative } from './native-backend.ts';
import { CALLER } from './place.ts';
import { backendConformance } from './suite.ts';

backendConformance(`native, as ${CALLER}`, (directory) => openNative(directory));

if (CALLERS.length > 1) {
  test('an ordinary user is promised the same', async () => {
    const mine = String(expect.getState().testPath);
    const { passed, failed, other } = await runAgain({ file: mine, uid: 42_424 });
    expect({ failed, other, enough: passed.length >= 40 }).toEqual({ failed: [], other: [], enough: true });
  }, 310_000);
}
