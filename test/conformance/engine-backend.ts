// test/conformance/engine-backend.ts: the container backend with this machine's engine, for tests that bypass the command line.
import { existsSync } from 'node:fs';
import { release, totalmem } from 'node:os';
import { join } from 'node:path';
import { createContainer } from '../../src/sandbox/container/container.ts';
import type { Engine } from '../../src/sandbox/engine/engine.ts';
import { ensureWhiteout, inspectHost } from '../../src/sandbox/checks/host.ts';
import { ensureInterpreter } from '../../src/sandbox/spec/interpreter.ts';
import type { Open } from './place.ts';

let count = 0;

/** `own`: files that the engine itself adds to every container. */
export function openEngine(engine: Engine, own: NonNullable<Open['own']>, create = createContainer): Open {
  const openOne = async (directory: string): ReturnType<Open> => {
    const uid = process.getuid?.() ?? 0;
    const host = await inspectHost({
      platform: process.platform,
      nodeArch: process.arch,
      uid,
      cacheDir: '',
      runtimeDir: '',
      memoryBytes: totalmem(),
      kernel: release(),
      engine,
    });
    const whiteout = await ensureWhiteout(join(directory, '..', 'state'));
    return {
      name: engine.name,
      start: async (spec, command, stdio, onListener) =>
        create({
          engine,
          runDir: directory,
          whiteout,
          callerIsRoot: uid === 0,
          owner: { uid, gid: process.getgid?.() ?? 0 },
          arch: host.arch,
          perl: host.programs.perl,
          interpreter:
            spec.root.kind === 'host' && engine.far === null
              ? null
              : await ensureInterpreter(host.programs.perl, join(directory, '../cache')),
          limitHost: host.limitHost,
          ipv6: existsSync('/proc/sys/net/ipv6'),
          runMark: 'conformance',
          workRoot: join(directory, '..', 'engine-work'),
          stateDir: join(directory, '..', 'state'),
          name: `ags-test-${process.pid}-${count++}`,
        }).start(spec, command, stdio, onListener),
    };
  };
  return Object.assign(openOne, { base: '/var/tmp', own });
}
