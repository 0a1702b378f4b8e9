// test/conformance/native-backend.ts: this machine's bubblewrap as a backend, for tests that bypass the command line.
// needs: sandbox
import { release, totalmem } from 'node:os';
import { join } from 'node:path';
import type { Backend } from '../../src/sandbox/backend.ts';
import { chooseStage, ensureWhiteout, inspectHost } from '../../src/sandbox/checks/host.ts';
import { createNative } from '../../src/sandbox/native/native.ts';

/** Replacements for parts of the backend. */
export interface Instead {
  readonly bwrap?: string;
  /** Runs before the launcher. */
  readonly prefix?: readonly string[];
}

export async function openNative(directory: string, instead: Instead = {}): Promise<Backend> {
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
    start: (spec, command, stdio, onListener) =>
      createNative({
        runDir: directory,
        whiteout,
        callerIsRoot: uid === 0,
        owner: { uid, gid: process.getgid?.() ?? 0 },
        arch: host.arch,
        programs: { ...host.programs, ...(instead.bwrap === undefined ? {} : { bwrap: instead.bwrap }) },
        stage:
          uid === 0 ? chooseStage(spec.mounts.flatMap((mount) => (mount.kind === 'bind' ? [mount.from] : []))) : '',
        overlays: true,
        namespaces: true,
        limitHost: host.limitHost,
        cgroup: { files: [], prefix: instead.prefix ?? [], env: {} },
        runMark: 'conformance',
      }).start(spec, command, stdio, onListener),
  };
}
