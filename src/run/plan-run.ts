// run/plan-run.ts: plans a run from a directory and the configuration: project, backend, image, hidden files, network and services.
// Invariant: planning starts nothing, and writes nothing but its cache of the last scan.
import { realpathSync } from 'node:fs';
import type { ConfigFlags, EffectiveConfig } from '../config/effective.ts';
import type { NetworkPolicy } from '../protocol/network.ts';
import { loopbackHint } from '../config/network/loopback.ts';
import { loadConfig } from '../config/load.ts';
import { NO_MACHINE, readMachine } from '../sandbox/spec/machine.ts';
import { prepareNetwork, type PlannedNetwork } from './network/plan-network.ts';
import { NO_SERVICES, serviceAddress, type PlannedCompose, type PlannedServices } from './planned-services.ts';
import { missingTargets, presentMounts } from './flag-targets.ts';
import { findHidden, type HiddenFiles } from './hidden-files.ts';
import type { RunPlan } from './run-plan.ts';
import { findProject } from './project.ts';
import { configInput, inspectMachine, sandboxUser, type HostContext } from './host-context.ts';

export interface PlanOptions {
  /** Adds what an agent needs to the configuration. */
  readonly adjust?: (config: EffectiveConfig) => EffectiveConfig | Promise<EffectiveConfig>;
  /** The sandbox works over the project's files as they are. */
  readonly live?: boolean;
  /** The image of an earlier turn. */
  readonly pinned?: { readonly reference: string; readonly id: string } | undefined;
}

export async function planRun(context: HostContext, flags: ConfigFlags, options: PlanOptions = {}): Promise<RunPlan> {
  const project = await findProject({
    cwd: context.cwd,
    home: context.home,
    stateDir: context.stateDir,
    cacheDir: context.cacheDir,
    dataDir: context.dataDir,
    configHome: context.env['XDG_CONFIG_HOME'],
  });
  const configured = await loadConfig(configInput(context, project.root, flags));
  const config = (await options.adjust?.(configured)) ?? configured;
  // An image implies a container.
  const backend =
    config.backend === 'auto' && config.image !== null
      ? (await import('../sandbox/engine/find-engine.ts')).needEngine(config.backend, context).name
      : config.backend;
  presentMounts(config, config.image !== null);
  const host = await inspectMachine(context, {}, backend);
  if (config.runtime !== null)
    await (await import('../sandbox/engine/find-engine.ts')).checkRuntime(host.engine, config.runtime);
  const image =
    config.image === null
      ? null
      : await import('../images/wanted/find-image.ts').then(({ findImage }) =>
          findImage(host, config, config.image ?? { kind: 'devcontainer' }, project.root, options.pinned ?? null),
        );
  if (host.engine?.far != null) (await import('./remote-limits.ts')).refuseWhatIsNear(config);
  const { workspaceKind } = await import('./readiness.ts');
  const choice = await workspaceKind(context, host, config.workspace);
  const root = context.uid === 0;
  const copies = choice.kind === 'copy' ? [`Workspace: a full copy, because ${choice.why}.`] : [];
  const machine = image === null ? readMachine({ home: context.home, etc: [], toolDirs: config.toolDirs }) : NO_MACHINE;
  const reachable = root || choice.namespaces;
  const { network, services } = await planNetworkAndServices(context, config, reachable);
  if (config.docker.enabled) {
    const { nestedOptions } = await import('./nested-docker-options.ts');
    nestedOptions(context, config, '');
  }
  const offline =
    reachable || config.network.mode === 'off' ? [] : [NO_NETWORK, ...(config.docker.enabled ? [NO_DOCKER] : [])];
  const missing = await missingTargets(context, flags, project, options.live !== false);
  const unseen = machine.leftOut.filter((path) => !config.mounts.some((mount) => mount.path === path));
  return {
    project,
    config,
    configured,
    host,
    image,
    hidden: options.live === false ? NOTHING_HIDDEN : await findHidden(context, project, config),
    user: {
      ...sandboxUser(context, config),
      name: root ? 'agent' : context.userName,
      shell: image === null ? context.shell : '/bin/sh',
    },
    cwd: realpathSync(context.cwd),
    workspace: choice.kind,
    overlays: choice.overlays,
    namespaces: choice.namespaces,
    machine,
    network,
    services,
    notices: [...copies, ...offline, ...missing, ...unseen.map(notShown), ...loopbackRules(config.network)],
  };
}

/** The network of a sandbox, and the services with listeners in it. */
export async function planNetworkAndServices(
  context: HostContext,
  config: EffectiveConfig,
  possible: boolean,
  compose: PlannedCompose | null = null,
): Promise<{ network: PlannedNetwork; services: PlannedServices }> {
  const beside = [
    ...config.services.map(({ name }, i) => ({ name, address: serviceAddress(i) })),
    ...(compose?.list ?? []),
  ];
  const network = await prepareNetwork(context, config, possible, beside);
  if (beside.length === 0) return { network, services: NO_SERVICES };
  const { planServices } = await import('./plan-services.ts');
  return planServices(context, config.services, network, compose);
}

const NOTHING_HIDDEN: HiddenFiles = { paths: [], trackedSecrets: [] };

const NO_NETWORK = 'Network: only loopback, because on this system only bwrap may create namespaces (see: ags doctor).';

const NO_DOCKER = 'Nested Docker: none, for the same reason.';

function loopbackRules({ rules, addresses }: NetworkPolicy): string[] {
  // With granted loopback addresses, such a rule works.
  if (addresses.some((block) => /^(?:127\.|::1)/.test(block))) return [];
  return rules.flatMap((rule) => loopbackHint(rule) ?? []);
}

function notShown(path: string): string {
  return `${path} is not shown, because another file system is mounted below it. To show it as it is: --mount ${path}`;
}
