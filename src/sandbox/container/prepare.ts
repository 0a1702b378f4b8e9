// sandbox/container/prepare.ts: creates the directories of a container before it starts.
import { chownSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { SandboxSpec } from '../../protocol/spec.ts';
import { usesWorkDirectory, type ContainerOptions } from './options.ts';
import { prepareMountPoints, prepareOverlay } from '../io/prepare-mounts.ts';
import type { PlannedFile } from '../spec/mount-sources.ts';

export function prepareContainer(options: ContainerOptions, spec: SandboxSpec, files: readonly PlannedFile[]): void {
  const { runDir } = options;
  const own = (path: string): void => {
    if (options.callerIsRoot) chownSync(path, spec.user.uid, spec.user.gid);
  };
  const workspace = spec.mounts.find((m) => m.kind === 'workspace')?.workspace;
  if (workspace !== undefined && workspace.kind !== 'copy') prepareOverlay(options, workspace, own);
  if (usesWorkDirectory(options, spec))
    mkdirSync(join(options.workRoot, options.name), { recursive: true, mode: 0o700 });
  for (const name of ['files', 'stage', 'none', 'memory', 'gate', 'pause'])
    mkdirSync(join(runDir, name), { recursive: true, mode: 0o755 });
  for (const { path, content, binary } of files)
    writeFileSync(join(runDir, path), content, { mode: 0o644, encoding: binary ? 'latin1' : 'utf8' });
  prepareMountPoints(spec, own);
}
