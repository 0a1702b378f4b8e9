// run/native-options.ts: the facts about this machine that the native backend needs to start one spec.
import { existsSync, statSync } from 'node:fs';
import type { SandboxSpec } from '../protocol/spec.ts';
import { chooseStage, ensureWhiteout, type NativeHost } from '../sandbox/checks/host.ts';
import type { NativeOptions } from '../sandbox/native/native.ts';
import type { RunPlan } from './run-plan.ts';
import type { HostContext } from './host-context.ts';

export async function nativeOptions(
  context: HostContext,
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
    whiteout: await ensureWhiteout(context.stateDir),
    callerIsRoot: context.uid === 0,
    owner: ownerOf(spec),
    arch: plan.host.arch,
    programs: plan.host.programs,
    stage: context.uid === 0 ? chooseStage([...sources, runDir]) : '',
    limitHost: hasGroup(plan.host, cgroup) ? plan.host.limitHost : { ...plan.host.limitHost, cgroup: NO_GROUP },
    overlays: plan.overlays,
    namespaces: plan.namespaces,
    cgroup,
    runMark: mark,
  };
}

const NO_GROUP = { kind: 'none', why: 'it was started without one' } as const;

/** An engine creates control groups itself. */
function hasGroup({ cgroupPlan }: NativeHost, { files, prefix }: NativeOptions['cgroup']): boolean {
  return cgroupPlan.kind === 'engine' || files.length > 0 || prefix.length > 0;
}

/** Root may work in another user's project: its files must still belong to the sandbox's user. */
function ownerOf(spec: SandboxSpec): { uid: number; gid: number } {
  const mount = spec.mounts.find((m) => m.kind === 'workspace');
  // If the workspace is at another path inside, its lowest layer tells the owner.
  const places =
    mount === undefined || mount.workspace.kind === 'copy'
      ? []
      : [mount.to, ...mount.workspace.layers.slice(-1).map(({ path }) => path)];
  const { uid, gid } = statSync(places.find((path) => existsSync(path)) ?? '/');
  return { uid, gid };
}
