// sandbox/container/root-mounts.ts: for a root caller, mounts a sandbox's sources where the engine finds them while the container starts:
// layers with their owner mapped to the sandbox's user, as in the native backend.
// Invariant: the mounts are in their own directory under /run, which only root may enter and which is never removed recursively.
import { existsSync } from 'node:fs';
import { run } from '../../lib/process/process.ts';
import { directoryIdentity } from '../../lib/files.ts';
import { perlProgram } from '../../lib/perl.ts';
import { AgsError } from '../../protocol/errors.ts';
import type { SandboxSpec } from '../../protocol/spec.ts';
import type { ContainerOptions } from './options.ts';
import { stageIn } from './leftovers.ts';
import { overlayOptions, type StagedPath } from '../spec/mount-sources.ts';

// mount, unshare, setns, umount2
const CALLS = { x64: '165,272,308,166', arm64: '40,97,268,39' } as const;

export function stageArgv(options: ContainerOptions, spec: SandboxSpec, staged: readonly StagedPath[]): string[] {
  const workspace = spec.mounts.find((mount) => mount.kind === 'workspace')?.workspace ?? null;
  const layers = workspace === null || workspace.kind === 'copy' ? [] : workspace.layers;
  return [
    ...stageCommand(options, 'on'),
    [spec.user.uid, spec.user.gid, options.owner.uid, options.owner.gid].join(','),
    overlayOptions(workspace),
    String(layers.length),
    ...layers.flatMap(({ path, identity }) => [path, identity]),
    String(staged.length),
    ...staged.flatMap(({ from, at, mapped, veil }) => [from, at, `${mapped ? 'map,' : ''}${veil}`]),
  ];
}

export function stagePlace({ name }: Pick<ContainerOptions, 'name'>): string {
  return stageIn(`/run/${name}`);
}

export async function stageOn(argv: readonly string[]): Promise<void> {
  const { exitCode, stderr } = await run(argv, { env: { PATH: '/usr/bin:/bin' } });
  if (exitCode === 0) return;
  throw new AgsError('backend.failed', `The sandbox could not be set up: ${stderr.trim()}`, {
    hint: 'See what works here: ags doctor',
  });
}

export async function stageOff(options: ContainerOptions): Promise<void> {
  await run(stageCommand(options, 'off'), { env: { PATH: '/usr/bin:/bin' } });
}

function stageCommand(options: ContainerOptions, how: 'on' | 'off'): string[] {
  const { runDir, engine, perl, arch } = options;
  return [
    perl,
    '-e',
    perlProgram('sandbox/perl/stage.pl'),
    '--',
    CALLS[arch],
    how,
    engine.socket ?? '',
    runDir,
    existsSync(runDir) ? directoryIdentity(runDir) : '',
    stagePlace(options),
  ];
}
