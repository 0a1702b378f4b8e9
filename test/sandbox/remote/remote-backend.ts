// test/sandbox/remote/remote-backend.ts: the backend for an engine on another machine, for tests without the command line. What a spec would show of this machine's
// programs, an image has there.
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
import type { FarEngine } from './remote-engine.ts';

/** Busybox, and under the name of Perl the one that every sandbox over an image has. */
export function imageWithPerl(far: FarEngine): string {
  const dir = mkdtempSync('/var/tmp/ags-perl-');
  const perl = join(dir, 'perl');
  const own = perlInside({ kind: 'image', reference: '', id: '', variables: [], volumes: [] });
  writeFileSync(perl, `#!/bin/sh\nexec ${own.join(' ')} "$@"\n`);
  chmodSync(perl, 0o755);
  try {
    return tinyImage({ files: { 'bin/perl': { copy: perl } } }, far.engine).name;
  } finally {
    rmSync(dir, { recursive: true });
  }
}

export function openFar(far: () => FarEngine, image: () => string): Open {
  const openOne: Open = async (directory, caller) => {
    const found = await inspectImage(far().engine, image());
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
    const backend = await openEngine(far().engine, { root: [], etc: [] }, createRemote)(directory, caller);
    return { ...backend, start: (spec, ...rest) => backend.start(overImage(spec), ...rest) };
  };
  return Object.assign(openOne, { base: '/var/tmp' });
}
