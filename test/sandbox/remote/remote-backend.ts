// test/sandbox/remote/remote-backend.ts: the backend for a remote engine, for tests that bypass the command line. Programs come from an
// image instead of this machine.
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isWithin } from '../../../src/lib/files.ts';
import type { SandboxSpec } from '../../../src/protocol/spec.ts';
import { inspectImage } from '../../../src/sandbox/engine/images.ts';
import { createRemote } from '../../../src/sandbox/remote/remote.ts';
import { rootOf } from '../../../src/sandbox/spec/image.ts';
import { perlInside } from '../../../src/sandbox/spec/interpreter.ts';
import { openEngine } from '../../conformance/engine-backend.ts';
import type { Open } from '../../conformance/place.ts';
import { tinyImage } from '../../images/tiny-image.ts';
import type { RemoteEngine } from './remote-engine.ts';

/** An image with busybox, and with ags's interpreter under the name of Perl. */
export function imageWithPerl(remote: RemoteEngine): string {
  const dir = mkdtempSync('/var/tmp/ags-perl-');
  const perl = join(dir, 'perl');
  const own = perlInside({ kind: 'image', reference: '', id: '', variables: [], volumes: [] });
  writeFileSync(perl, `#!/bin/sh\nexec ${own.join(' ')} "$@"\n`);
  chmodSync(perl, 0o755);
  try {
    return tinyImage({ files: { 'bin/perl': { copy: perl } } }, remote.engine).name;
  } finally {
    rmSync(dir, { recursive: true });
  }
}

export function openRemote(remote: () => RemoteEngine, image: () => string): Open {
  const openOne: Open = async (directory, caller) => {
    const found = await inspectImage(remote().engine, image());
    if (found === null) throw new Error('the image is not there');
    const root = rootOf(found);
    const overImage = (spec: SandboxSpec): SandboxSpec => ({
      ...spec,
      root,
      mounts: spec.mounts.filter(
        (mount) =>
          mount.kind === 'tmpfs' ||
          mount.kind === 'file' ||
          mount.kind === 'workspace' ||
          (mount.kind === 'bind' && isWithin(mount.from, join(directory, '..'))),
      ),
    });
    const backend = await openEngine(remote().engine, { root: [], etc: [] }, createRemote)(directory, caller);
    return { ...backend, start: (spec, ...rest) => backend.start(overImage(spec), ...rest) };
  };
  return Object.assign(openOne, { base: '/var/tmp' });
}
