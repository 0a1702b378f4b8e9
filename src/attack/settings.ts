// attack/settings.ts: what the user's project has configured, for the projects of the stage: neighbours and agents there are started by
// commands of their own, which read it as they do anywhere. What the user has configured for all projects they find by themselves.
// Invariant: whatever decides how a sandbox is made is carried over. Left out is what stands beside it, what is kept in files of the project, and
// what would run a program of the user.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { SPY, SPY_PROGRAM } from './table/services.ts';
import type { EffectiveConfig } from '../config/effective.ts';
import { readProject } from '../config/load.ts';
import { approve } from '../config/trust.ts';
import type { ConfigFile } from '../protocol/config/config.ts';
import type { RunPlan } from '../run/plan-run.ts';
import { configInput, type World } from '../run/host-context.ts';

/** null: nothing need be said. */
export async function settingsOf(caller: World, own: RunPlan | null): Promise<ConfigFile | null> {
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
    ...decisive
  } = values;
  const settings: ConfigFile = {
    ...decisive,
    ...(network === undefined ? {} : { network: networkOf(network) }),
    // By its id: what it was built from, or how it was named, is not needed again.
    ...(own.image === null ? {} : { image: own.image.id }),
    ...(compose === undefined || own.config.compose === null ? {} : { docker: { ...values.docker, enabled: true } }),
  };
  return Object.keys(settings).length === 0 ? null : settings;
}

/** The rules. Ports of this machine can be had once, the way out leads to hosts of ours, and nobody is asked. */
function networkOf(network: NonNullable<ConfigFile['network']>): NonNullable<ConfigFile['network']> {
  const { publish: _publish, upstream: _upstream, dns: _dns, mode, ...rules } = network;
  return mode === undefined ? rules : { ...rules, mode: mode === 'record' ? 'on' : mode };
}

/** As if the user had written this there, and approved it. `serves`: with a service that does what it is told, in the place of the user's. */
export async function configure(
  world: World,
  project: string,
  settings: ConfigFile | null,
  serves: boolean,
): Promise<void> {
  if (settings === null && !serves) return;
  writeFileSync(join(project, 'ags.yaml'), JSON.stringify({ ...settings, ...(serves ? SPY_SETTINGS : {}) }));
  const { asks, bytes } = await readProject(configInput(world, project));
  if (asks.length > 0) approve({ stateDir: world.stateDir, projectDir: project, bytes, asks, now: world.now() });
}

const SPY_SETTINGS: ConfigFile = {
  services: { [SPY.name]: { run: ['perl', '-e', SPY_PROGRAM], ports: [SPY.port] } },
};

/** What of a configuration the attempts do not meet, in words: ours stands in the place of some of it, and the rest is not started. */
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
