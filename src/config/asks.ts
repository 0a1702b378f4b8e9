// config/asks.ts: the rights that a project's file requests beyond the user's own configuration, one readable line each.
// Invariant: nothing in a project's file lets a sandbox see or use more without a line here. Restrictions need none.
// A line holds the requested value and, for limits, the user's own; a change of either ends an earlier approval. Approvals
// store these lines, so changing the wording of one asks every user again.
import { agentAsks } from './agent-asks.ts';
import type { ServiceConfig } from '../protocol/service.ts';
import { COMPOSE_OVERRIDE, LIMITS } from './defaults.ts';
import type { EffectiveConfig } from './effective.ts';
import { originOf, type Layer } from './file/layer.ts';
import { homeText } from './home.ts';
import { hookAsks } from './hook-asks.ts';
import { networkAsks, secretAsks } from './network/asks.ts';
import { isAbove, LIMIT_FIELDS, LIMIT_KINDS } from './limits.ts';

/** `base` is the configuration without the project's file, `asked` the one with it. */
export function asksOf(project: Layer, base: EffectiveConfig, asked: EffectiveConfig): string[] {
  const asks: string[] = [];
  const ask = (key: string, line: string): void => void asks.push(`${originOf(project, key)}: ${onOneLine(line)}`);
  const added = (
    key: string,
    before: readonly string[],
    after: readonly string[],
    line: (value: string) => string,
  ): void => {
    for (const [i, value] of after.entries()) {
      if (!before.includes(value)) asks.push(`${asked.origins[`${key}[${i}]`]}: ${onOneLine(line(value))}`);
    }
  };

  added('tools', base.toolDirs, asked.toolDirs, (dir) => `tools.add: see ~/${dir} of your home`);
  added('mounts', paths(base), paths(asked), (path) => `mounts: see ${path} of this machine`);
  added('etc', base.etc, asked.etc, (name) => `etc: see /etc/${name}`);
  added('env.pass', base.envPass, asked.envPass, (name) => `env.pass: read ${name} of your environment`);
  added('reveal', base.reveal, asked.reveal, (pattern) => `reveal: see hidden files of the project: ${pattern}`);
  if (asked.backend !== base.backend) ask('backend', `backend: build its sandboxes with ${asked.backend}`);
  const image = imageText(asked.image);
  if (image !== imageText(base.image))
    ask(project.values.dockerfile === undefined ? 'image' : 'dockerfile', `image: run its sandboxes over ${image}`);
  if (asked.home.keep !== 'task' && JSON.stringify(asked.home) !== JSON.stringify(base.home)) {
    const shared = asked.home.keep === 'directory' && asked.home.shared ? ', shared with other projects' : '';
    const where =
      asked.home.keep === 'project' ? 'in the data directory of ags' : `below ${homeText(asked.home)}${shared}`;
    ask(
      project.values.home?.keep === undefined ? 'home.shared' : 'home.keep',
      `home: keep its home between tasks, ${where}`,
    );
  }
  if (asked.runtime !== base.runtime) ask('runtime', `runtime: run its containers with ${asked.runtime}`);
  if (asked.docker.enabled && !base.docker.enabled) {
    const by = project.values.docker?.enabled === true ? 'docker' : 'compose';
    ask(
      project.values[by]?.enabled === undefined ? by : `${by}.enabled`,
      `${by}: have an engine of its own inside, which makes namespaces and mounts`,
    );
  }
  // The file comes from the checkout, committed or not, hidden or not. The user may turn compose on with a flag.
  const override = project.values.compose?.override ?? COMPOSE_OVERRIDE;
  if (override !== COMPOSE_OVERRIDE && override !== base.compose?.override)
    ask('compose.override', `compose.override: lay your own ${override} over its compose files, even if it is hidden`);
  added('docker.registries', base.docker.registries, asked.docker.registries, registryAsk);
  // An image of the user's engine may hold anything: code of other projects, variables with passwords. A project that runs its
  // own program in it, or controls the image's program, can read all of it.
  const known = base.services.map(whatRuns);
  for (const service of asked.services)
    if (service.image !== null && !known.includes(whatRuns(service)))
      asks.push(
        `${service.origin}: services.${service.name}: run the image ${service.image} of your engine, and see what is in it`,
      );
  if (asked.user !== base.user) ask('user', `user: run as uid ${asked.user} when you are root`);
  if (asked.kernel.ptrace && !base.kernel.ptrace) ask('kernel.ptrace', 'kernel.ptrace: debug processes of the sandbox');
  if (asked.kernel.unixSockets && !base.kernel.unixSockets)
    ask('kernel.unixSockets', 'kernel.unixSockets: use Unix sockets inside');
  for (const field of LIMIT_FIELDS) {
    const { name, format } = LIMIT_KINDS[field];
    if (!isAbove(asked.limits[field], base.limits[field])) continue;
    const yours = base.origins[`limits.${name}`] === 'built-in' ? LIMITS[name] : format(base.limits[field]);
    ask(`limits.${name}`, `limits.${name}: use ${project.values.limits?.[name]}, above your ${yours}`);
  }
  if ((asked.tasks.parallel ?? 0) > (base.tasks.parallel ?? 2))
    ask('tasks.parallel', `tasks.parallel: let ${asked.tasks.parallel} agents run at once`);
  for (const model of Object.keys(project.values.prices ?? {}))
    ask(`prices.${model}`, `prices: count ${model} at ${project.values.prices?.[model]}`);
  for (const [name, mine, theirs] of [
    ['tasks.cost', base.tasks.costMicros, asked.tasks.costMicros],
    ['tasks.tokens', base.tasks.tokens, asked.tasks.tokens],
  ] as const)
    if (mine !== null && (theirs ?? 0) > mine) ask(name, `${name}: let a task use more than your own limit`);
  asks.push(
    ...networkAsks(project, base, asked).map(onOneLine),
    ...secretAsks(base, asked).map(onOneLine),
    ...agentAsks(base, asked).map(onOneLine),
    ...hookAsks(base, asked).map(onOneLine),
  );
  return asks.toSorted((a, b) => lineOf(a) - lineOf(b));
}

function whatRuns({ image, preset, run, ports, seed, environment, scratch, ready }: ServiceConfig): string {
  return JSON.stringify([image, preset, run, ports, seed, environment, scratch, ready.command]);
}

export function imageText(image: EffectiveConfig['image']): string {
  if (image === null) return 'none';
  switch (image.kind) {
    case 'reference':
      return image.reference;
    case 'dockerfile':
      return `what ${image.path} builds`;
    case 'devcontainer':
      return 'what .devcontainer/devcontainer.json names';
  }
}

function registryAsk(entry: string): string {
  const [name, from] = entry.split('=');
  return from === undefined
    ? `docker.registries: pull images from ${name}`
    : `docker.registries: pull images of ${name} from ${from}`;
}

// Other characters that could make one ask look like two, or like none, are refused in parse.ts.
function onOneLine(text: string): string {
  return text.replaceAll('\n', '\\n').replaceAll('\t', '\\t').replaceAll('\r', '\\r');
}

function lineOf(ask: string): number {
  return Number(/:(\d+): /.exec(ask)?.[1] ?? 0);
}

function paths(config: EffectiveConfig): string[] {
  // Built-in mounts count too: requesting one by name shows no more than that.
  return config.mounts.map(({ path }) => path);
}
