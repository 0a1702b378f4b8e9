// attack/settings.ts: copies the settings of the user's project to the attacked projects. Neighbours and agents there are started by their
// own commands, which read the settings as usual and find the user's own configuration by themselves.
// Invariant: every setting that decides how a sandbox is made is copied. Services and the like, values stored in project files, and settings
// that would run a program of the user are left out.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { SPY, SPY_PROGRAM } from './table/services.ts';
import type { EffectiveConfig } from '../config/effective.ts';
import { readProject } from '../config/load.ts';
import { approve } from '../config/trust.ts';
import type { ConfigFile } from '../protocol/config/config.ts';
import type { RunPlan } from '../run/run-plan.ts';
import { configInput, type HostContext } from '../run/host-context.ts';

/** null: no setting is needed. */
export async function settingsOf(caller: HostContext, own: RunPlan | null): Promise<ConfigFile | null> {
  if (own === null) return null;
  const { layers } = await readProject(configInput(caller, own.project.root));
  const values = layers.find(({ kind }) => kind === 'project')?.values ?? {};
  const {
    image: _image,
    dockerfile: _dockerfile,
    services: _services,
    compose,
    secrets: _secrets,
    setup: _setup,
    checks: _checks,
    merge: _merge,
    hooks: _hooks,
    tasks: _tasks,
    gateway: _gateway,
    network,
    home: _home,
    ...decisive
  } = values;
  const settings: ConfigFile = {
    ...decisive,
    ...(network === undefined ? {} : { network: networkOf(network) }),
    // Attempts leave nothing behind.
    ...(own.config.home.keep === 'task' ? {} : { home: { keep: 'task' } }),
    // By ID: how the image was built or named is not needed again.
    ...(own.image === null ? {} : { image: own.image.id }),
    ...(compose === undefined || own.config.compose === null ? {} : { docker: { ...values.docker, enabled: true } }),
  };
  return Object.keys(settings).length === 0 ? null : settings;
}

/** The rules. Published ports and upstream proxies are left out, because a port exists once and the hosts are ours; requests never ask. */
function networkOf(network: NonNullable<ConfigFile['network']>): NonNullable<ConfigFile['network']> {
  const { publish: _publish, upstream: _upstream, dns: _dns, mode, ...rules } = network;
  return mode === undefined ? rules : { ...rules, mode: mode === 'record' ? 'on' : mode };
}

/** Writes the settings and approves them, as the user would. `serves`: with a service that obeys the attempts, in place of the user's. */
export async function configure(
  context: HostContext,
  project: string,
  settings: ConfigFile | null,
  serves: boolean,
): Promise<void> {
  if (settings === null && !serves) return;
  writeFileSync(join(project, 'ags.yaml'), JSON.stringify({ ...settings, ...(serves ? SPY_SETTINGS : {}) }));
  const { asks, bytes } = await readProject(configInput(context, project));
  if (asks.length > 0) approve({ stateDir: context.stateDir, projectDir: project, bytes, asks, now: context.now() });
}

const SPY_SETTINGS: ConfigFile = {
  services: { [SPY.name]: { run: ['perl', '-e', SPY_PROGRAM], ports: [SPY.port] } },
};

/** Parts of a configuration that no attempt covers: some are replaced by ours, the others are not started. */
export function notAttacked({
  services,
  secrets,
  network,
  compose,
  setup,
  checks,
  hooks,
}: EffectiveConfig): readonly string[] {
  const replaced: [string, boolean][] = [
    ['services', services.length > 0],
    ['secrets', secrets.length > 0],
    ['upstream proxies', network.upstreams.length > 0],
  ];
  const absent: [string, boolean][] = [
    ['published ports', network.publish.length > 0],
    ['compose files', compose !== null],
    ['setup', setup.run.length > 0],
    ['checks', checks.run.length > 0],
    ['hooks', hooks.use.length + hooks.commands.length > 0],
  ];
  const has = (all: readonly [string, boolean][]): string[] => all.flatMap(([name, is]) => (is ? [name] : []));
  return [...has(replaced).map((name) => `${name} (ours in their place)`), ...has(absent)];
}
