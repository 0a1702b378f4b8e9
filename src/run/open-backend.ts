// run/open-backend.ts: the backend that one sandbox of a run is started by.
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { isWithin } from '../lib/files.ts';
import type { SandboxSpec } from '../protocol/spec.ts';
import type { Backend } from '../sandbox/backend.ts';
import type { DockerOptions } from '../sandbox/container/container.ts';
import type { Engine } from '../sandbox/engine/engine.ts';
import { createNative, type NativeOptions } from '../sandbox/native/native.ts';
import { nativeOptions } from './native-options.ts';
import type { RunPlan } from './plan-run.ts';
import type { World } from './host-context.ts';

export async function openBackend(
  world: World,
  plan: Pick<RunPlan, 'host' | 'overlays' | 'namespaces'>,
  spec: SandboxSpec,
  runDir: string,
  mark: string,
  cgroup: NativeOptions['cgroup'],
): Promise<Backend> {
  const options = await nativeOptions(world, plan, spec, runDir, mark, cgroup);
  const { engine } = plan.host;
  if (engine === null) return createNative(options);
  const container = await containerOptions(world, options, engine, plan.host.programs.perl, spec, containerName(mark));
  if (engine.far !== null) return (await import('../sandbox/remote/remote.ts')).createFar(container);
  return (await import('../sandbox/container/container.ts')).createDocker(container);
}

export async function containerOptions(
  world: World,
  options: NativeOptions,
  engine: Engine,
  perl: string,
  { root }: SandboxSpec,
  name: string,
): Promise<DockerOptions> {
  const { ensureInterpreter } = await import('../sandbox/spec/interpreter.ts');
  const interpreter = root.kind === 'image' ? await ensureInterpreter(perl, world.cacheDir) : null;
  const workRoot = engineWorkDirs(world).find((dir) => isWithin(options.runDir, dirname(dir))) ?? options.runDir;
  const ipv6 = existsSync('/proc/sys/net/ipv6');
  return { ...options, engine, perl, interpreter, name, workRoot, stateDir: world.stateDir, ipv6 };
}

/** One on each file system that a run may be on. */
export function engineWorkDirs({ stateDir, cacheDir, dataDir }: World): string[] {
  return [stateDir, cacheDir, dataDir].map((dir) => join(dir, 'engine-work'));
}

/** A run has several sandboxes, one after the other and at the same time. */
function containerName(mark: string): string {
  return `ags-${mark}-${process.pid}-${Date.now().toString(36)}${Math.random().toString(36).slice(2, 6)}`;
}
