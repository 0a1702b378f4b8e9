// test/nested-docker/full-disk.full.test.ts: nested Docker whose containers fill the disk of this machine's engine, where the limits of a sandbox do not apply.
import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ENGINE_ENV, nestedEngineArgv } from '../../src/sandbox/nested/engine-args.ts';
import { findNestedPrograms, startNestedEngine, type NestedOptions } from '../../src/sandbox/nested/nested-engine.ts';
import { seccompArch } from '../../src/sandbox/spec/seccomp.ts';
import { ENGINE } from '../conformance/docker-backend.ts';
import { CAN_NEST } from './place.ts';

describe.runIf(CAN_NEST && process.getuid?.() === 0)('nested Docker', () => {
  let dir: string;
  beforeAll(() => {
    dir = mkdtempSync('/var/lib/ags-full-disk-');
    mkdirSync(join(dir, 'disk'));
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=64m', 'tmpfs', join(dir, 'disk')]);
    // A wrapper of Docker that reports a small tmpfs as its disk, so that the test fills no real disk.
    const script = `#!/bin/sh\ncase "$*" in *DockerRootDir*) echo '${dir}/disk' ;; *) exec ${ENGINE.program} "$@" ;; esac\n`;
    writeFileSync(join(dir, 'docker'), script);
    chmodSync(join(dir, 'docker'), 0o755);
  });
  afterAll(() => {
    execFileSync('umount', [join(dir, 'disk')]);
    rmSync(dir, { recursive: true, force: true });
  });
  const options = (): NestedOptions => ({
    engine: { ...ENGINE, program: join(dir, 'docker') },
    name: `ags-full-${process.pid}-${Date.now().toString(36)}d`,
    runMark: 'full',
    perl: '/usr/bin/perl',
    arch: seccompArch(process.arch) ?? 'x64',
    dir: join(dir, 'meeting'),
    limits: { memoryBytes: 2 ** 30, processes: 512 },
    tmpBytes: 2 ** 26,
    argv: nestedEngineArgv(findNestedPrograms(), []),
    env: ENGINE_ENV,
    gateway: false,
    trust: '',
    onListener: () => undefined,
    onPorts: () => undefined,
  });

  test('ends before the disk is full, and does not start again until there is room', async () => {
    const engine = await startNestedEngine(options());
    writeFileSync(join(dir, 'disk/x'), Buffer.alloc(62 * 2 ** 20));
    expect(await engine.done).toMatch(/^the disk of .* is nearly full \(.* left\)$/);
    await expect(startNestedEngine(options())).rejects.toMatchObject({ code: 'disk.full' });
    rmSync(join(dir, 'disk/x'));
    const again = await startNestedEngine(options());
    await again.close();
  }, 120_000);
});
