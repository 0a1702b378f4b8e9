// test/images/image-place.ts: a sandbox over an image, for tests that bypass the command line.
import type { Mount, SandboxSpec } from '../../src/protocol/spec.ts';
import { sandboxPath } from '../../src/protocol/spec.ts';
import { inspectImage } from '../../src/sandbox/engine/images.ts';
import { rootOf } from '../../src/sandbox/spec/image.ts';
import { ENGINE, openDocker } from '../conformance/docker-backend.ts';
import { createPlace, LIMITS, tmpfs, USER, type Open, type Place } from '../conformance/place.ts';

/** A place whose spec has the minimum that programs of an image need. */
export async function openImage(
  name: string,
  by = ENGINE,
  open: Open = openDocker,
): Promise<Disposable & { place: Place; spec(more?: readonly Mount[], changes?: Partial<SandboxSpec>): SandboxSpec }> {
  const place = await createPlace(open);
  const image = await inspectImage(by, name);
  if (image === null) throw new Error(`there is no ${name}`);
  return {
    place,
    spec: (more = [], changes = {}) => ({
      hostname: 'over-an-image',
      root: rootOf(image),
      user: USER,
      mounts: [tmpfs('/tmp', 2 ** 20), ...more],
      env: { PATH: '/bin' },
      workdir: sandboxPath('/'),
      network: { kind: 'loopback' },
      limits: LIMITS,
      kernel: { ptrace: false, unixSockets: true },
      runtime: null,
      ...changes,
    }),
    [Symbol.dispose]: () => place[Symbol.dispose](),
  };
}
