// run/open-backend.ts: the backend that starts one sandbox of a run.
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { isWithin } from '../lib/files.ts';
import type { SandboxSpec } from '../protocol/spec.ts';
import type { Backend } from '../sandbox/backend.ts';
import type { ContainerOptions } from '../sandbox/container/options.ts';
import type { Engine } from '../sandbox/engine/engine.ts';
import { createNative, type NativeOptions } from '../sandbox/native/native.ts';
import { nativeOptions } from './native-options.ts';
import type { RunPlan } from './run-plan.ts';
import type { HostContext } from './host-context.ts';

export async function openBackend(
  context: HostContext,
  plan: Pick<RunPlan, 'host' | 'overlays' | 'namespaces'>,
  spec: SandboxSpec,
  runDir: string,
  mark: string,
  cgroup: NativeOptions['cgroup'],
): Promise<Backend> {
  const options = await nativeOptions(context, plan, spec, runDir, mark, cgroup);
  const { engine } = plan.host;
  if (engine === null) return createNative(options);
  const container = await containerOptions(
    context,
    options,
    engine,
    plan.host.programs.perl,
    spec,
    containerName(mark),
  );
  if (engine.far !== null) return (await import('../sandbox/remote/remote.ts')).createRemote(container);
  return (await import('../sandbox/container/container.ts')).createContainer(container);
}

export async function containerOptions(
  context: HostContext,
  options: NativeOptions,
  engine: Engine,
  perl: string,
  { root }: SandboxSpec,
  name: string,
): Promise<ContainerOptions> {
  const { ensureInterpreter } = await import('../sandbox/spec/interpreter.ts');
  const interpreter = root.kind === 'image' ? await ensureInterpreter(perl, context.cacheDir) : null;
  const workRoot = engineWorkDirs(context).find((dir) => isWithin(options.runDir, dirname(dir))) ?? options.runDir;
  const ipv6 = existsSync('/proc/sys/net/ipv6');
  return { ...options, engine, perl, interpreter, name, workRoot, stateDir: context.stateDir, ipv6 };
}

/** One directory on each file system that can hold a run. */
export function engineWorkDirs({ stateDir, cacheDir, dataDir }: HostContext): string[] {
  return [stateDir, cacheDir, dataDir].map((dir) => join(dir, 'engine-work'));
}

/** Unique, because a run has several sandboxes, some at the same time. */
function containerName(mark: string): string {
  return `ags-${mark}-${process.pid}-${Date.now().toString(36)}${Math.random().toString(36).slice(2, 6)}`;
}
