// sandbox/container/root-mounts.ts: for a caller that is root, the mounts of a sandbox stand where the engine finds them for the moment in
// which the container starts: layers with their owner mapped to the sandbox's user, as the native backend has them.
// Invariant: they stand in a directory of their own under /run, which nobody but root may enter, and which nobody ever removes recursively.
import { existsSync } from 'node:fs';
import { run } from '../../lib/process/process.ts';
import { directoryIdentity } from '../../lib/files.ts';
import { AgsError } from '../../protocol/errors.ts';
import type { SandboxSpec } from '../../protocol/spec.ts';
import type { DockerOptions } from './container.ts';
import { stageIn } from './leftovers.ts';
import { STAGE } from '../docker-scripts.ts';
import { overlayOptions, type StagedPath } from '../spec/mount-sources.ts';

// mount, unshare, setns, umount2
const CALLS = { x64: '165,272,308,166', arm64: '40,97,268,39' } as const;

export function stageArgv(options: DockerOptions, spec: SandboxSpec, staged: readonly StagedPath[]): string[] {
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

export function stagePlace({ name }: Pick<DockerOptions, 'name'>): string {
  return stageIn(`/run/${name}`);
}

export async function stageOn(argv: readonly string[]): Promise<void> {
  const { exitCode, stderr } = await run(argv, { env: { PATH: '/usr/bin:/bin' } });
  if (exitCode === 0) return;
  throw new AgsError('backend.failed', `The sandbox could not be set up: ${stderr.trim()}`, {
    hint: 'See what works here: ags doctor',
  });
}

export async function stageOff(options: DockerOptions): Promise<void> {
  await run(stageCommand(options, 'off'), { env: { PATH: '/usr/bin:/bin' } });
}

function stageCommand(options: DockerOptions, how: 'on' | 'off'): string[] {
  const { runDir, engine, perl, arch } = options;
  return [
    perl,
    '-e',
    STAGE,
    '--',
    CALLS[arch],
    how,
    engine.socket ?? '',
    runDir,
    existsSync(runDir) ? directoryIdentity(runDir) : '',
    stagePlace(options),
  ];
}
