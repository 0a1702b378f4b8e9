// run/native-options.ts: what the native backend has to know of this machine to start one spec.
import { existsSync, statSync } from 'node:fs';
import type { SandboxSpec } from '../protocol/spec.ts';
import { chooseStage, ensureWhiteout, type NativeHost } from '../sandbox/checks/host.ts';
import type { NativeOptions } from '../sandbox/native/native.ts';
import type { RunPlan } from './plan-run.ts';
import type { World } from './host-context.ts';

export async function nativeOptions(
  world: World,
  plan: Pick<RunPlan, 'host' | 'overlays' | 'namespaces'>,
  spec: SandboxSpec,
  runDir: string,
  mark: string,
  cgroup: NativeOptions['cgroup'],
): Promise<NativeOptions> {
  const sources = spec.mounts.flatMap((m) =>
    m.kind === 'bind'
      ? [m.from]
      : m.kind === 'workspace' && m.workspace.kind !== 'copy'
        ? m.workspace.layers.map(({ path }) => path)
        : [],
  );
  return {
    runDir,
    whiteout: await ensureWhiteout(world.stateDir),
    callerIsRoot: world.uid === 0,
    owner: ownerOf(spec),
    arch: plan.host.arch,
    programs: plan.host.programs,
    stage: world.uid === 0 ? chooseStage([...sources, runDir]) : '',
    limitHost: hasGroup(plan.host, cgroup) ? plan.host.limitHost : { ...plan.host.limitHost, cgroup: NO_GROUP },
    overlays: plan.overlays,
    namespaces: plan.namespaces,
    cgroup,
    runMark: mark,
  };
}

const NO_GROUP = { kind: 'none', why: 'it was started without one' } as const;

/** An engine makes them itself. */
function hasGroup({ cgroupPlan }: NativeHost, { files, prefix }: NativeOptions['cgroup']): boolean {
  return cgroupPlan.kind === 'engine' || files.length > 0 || prefix.length > 0;
}

/** Root may work in somebody else's project: its files must belong to the sandbox's user all the same. Inside it has its own path. */
function ownerOf(spec: SandboxSpec): { uid: number; gid: number } {
  const mount = spec.mounts.find((m) => m.kind === 'workspace');
  // Where it is shown at another path, what it stands on tells.
  const places =
    mount === undefined || mount.workspace.kind === 'copy'
      ? []
      : [mount.to, ...mount.workspace.layers.slice(-1).map(({ path }) => path)];
  const { uid, gid } = statSync(places.find((path) => existsSync(path)) ?? '/');
  return { uid, gid };
}
