// images/devcontainer/devcontainer.ts: write a `.devcontainer/` for a project: the same rules as its sandboxes have, for editors.
// Invariant: nothing that is there is replaced unless the user says so, and nothing is written through a link.
import { existsSync, lstatSync, mkdirSync, statSync, chownSync } from 'node:fs';
import { basename, join } from 'node:path';
import { AgsError } from '../../protocol/errors.ts';
import { hostAndPort } from '../../protocol/host-name.ts';
import { formatRule, isNarrow } from '../../protocol/network-rule.ts';
import type { NetworkPolicy, NetworkRule } from '../../protocol/network.ts';
import { parseAllowList } from '../../config/network/allow-list.ts';
import type { EffectiveConfig } from '../../config/effective.ts';
import { loadConfig } from '../../config/load.ts';
import { expandRules } from '../../config/network/presets.ts';
import { INNER_BASE } from '../../sandbox/nested/engine-args.ts';
import { INNER_USERS } from '../../sandbox/inner-scripts.ts';
import { devContainerFiles, type DevContainer } from './files.ts';
import { devContainerMark } from './mark.ts';
import { composeServices, type ComposeService } from './services.ts';
import { proxyEnvironment, withEngine } from '../../run/network/plan-network.ts';
import { findProject } from '../../run/project.ts';
import { configInput, type World } from '../../run/host-context.ts';

export interface WrittenDevContainer {
  readonly root: string;
  /** Below the root. */
  readonly files: readonly string[];
  /** What the configuration has that a dev container cannot have, in sentences. */
  readonly leftOut: readonly string[];
  /** What the engine beside it can do and cannot, for people; null: there is none. */
  readonly docker: string | null;
}

export interface DevContainerWish {
  readonly services: readonly string[];
  /** With an engine of its own, also where the configuration has none. */
  readonly docker?: boolean;
  readonly force: boolean;
  readonly agsPackage: string;
}

export async function initDevContainer(world: World, wish: DevContainerWish): Promise<WrittenDevContainer> {
  const { root } = await findProject({ ...world, configHome: world.env['XDG_CONFIG_HOME'] });
  return writeDevContainer(world, root, root, wish);
}

/** With the configuration of a project, into its own directory or another one. */
export async function writeDevContainer(
  world: World,
  project: string,
  root: string,
  wish: Omit<DevContainerWish, 'force'> & { readonly force?: boolean },
): Promise<WrittenDevContainer> {
  const config = await loadConfig(configInput(world, project));
  const beside = composeServices(config.services, wish.services);
  const docker = wish.docker === true || config.docker.enabled;
  const described = describe(world, root, config, beside.services, wish.agsPackage);
  const files = devContainerFiles(docker ? withDocker(described, config) : described);
  await writeFiles(join(root, DIRECTORY), files, wish.force === true);
  return {
    root,
    files: [...files.keys()].map((name) => `${DIRECTORY}/${name}`),
    leftOut: [
      ...leftOut(config),
      ...beside.leftOut,
      ...(described.hasGit ? [] : [NO_GIT]),
      ...(docker ? withoutMirrors(config) : []),
    ],
    docker: docker ? describeEngine() : null,
  };
}

const DIRECTORY = '.devcontainer';

/** An engine that is told to mount what is not there makes it: a directory of root's, in the project. */
const NO_GIT =
  'A .git that is read-only inside: there is none yet, and whatever runs there can make one, with programs that your git starts. After git init: ags devcontainer init --force';

function describe(
  { stateDir, configFile }: World,
  root: string,
  { network }: EffectiveConfig,
  services: readonly ComposeService[],
  agsPackage: string,
): DevContainer {
  const name = basename(root).replaceAll(/[^A-Za-z0-9._-]+/g, '-');
  const rules = network.mode === 'off' ? [] : expandRules(network).filter((rule) => !isNarrow(rule));
  return {
    name: /[A-Za-z0-9]/.test(name) ? name : 'project',
    mark: devContainerMark(stateDir, root),
    // Of a worktree it is a file, which says whose settings and hooks git follows.
    hasGit: lstatSync(join(root, '.git'), { throwIfNoEntry: false }) !== undefined,
    services,
    docker: false,
    rules: rules.map((rule) => ({ ...rule, origin: rule.origin.replace(configFile, 'your config.yaml') })),
    gatewayFile: gatewayFile(network),
    environment: proxyEnvironment(
      services.map(({ service }) => service.name),
      [],
      [],
    ),
    agsPackage,
    extensions: EXTENSIONS.filter(([file]) => existsSync(join(root, file))).map(([, extension]) => extension),
  };
}

function withDocker(made: DevContainer, config: EffectiveConfig): DevContainer {
  const rules = [...made.rules, ...imageRules(config)];
  return { ...made, docker: true, rules, environment: withEngine(made.environment) };
}

/** Where the engine beside it gets images: through the gateway, as everybody there. */
function imageRules({ docker, network }: EffectiveConfig): NetworkRule[] {
  if (network.mode === 'off') return [];
  const names = [...HUB, ...docker.registries.filter((entry) => !entry.includes('='))];
  return parseAllowList(names.join('\n'), 'images for docker');
}

const HUB = ['registry-1.docker.io', 'auth.docker.io', 'production.cloudflare.docker.com'];

function withoutMirrors({ docker }: EffectiveConfig): string[] {
  return docker.registries
    .filter((entry) => entry.includes('='))
    .map((entry) => `The registry ${entry}: the engine asks every registry by its own name, through the gateway.`);
}

function describeEngine(): string {
  return `an engine of its own beside it, rootless: users ${INNER_BASE} to ${INNER_BASE + INNER_USERS - 1} here, who own nothing; two capabilities that it gives up before it starts, filtered system calls, no network but the gateway. It needs Docker Compose 2`;
}

/** What marks a language, and what Visual Studio Code reads it with. */
const EXTENSIONS: readonly (readonly [file: string, extension: string])[] = [
  ['package.json', 'dbaeumer.vscode-eslint'],
  ['pyproject.toml', 'ms-python.python'],
  ['go.mod', 'golang.go'],
  ['Cargo.toml', 'rust-lang.rust-analyzer'],
  ['pom.xml', 'redhat.java'],
  ['build.gradle', 'redhat.java'],
];

/** null: its list says everything. */
function gatewayFile({ addresses, dns, upstreams }: NetworkPolicy): string | null {
  const open = upstreams.filter(({ auth }) => auth === null);
  if (addresses.length + dns.length + open.length === 0) return null;
  const list = (key: string, values: readonly unknown[]): string =>
    values.length === 0 ? '' : `  ${key}:\n${values.map((value) => `    - ${JSON.stringify(value)}\n`).join('')}`;
  return `# What the gateway needs besides its list of hosts, in the words of ags.yaml.
network:
  defaults: false
${list('addresses', addresses)}${list('dns', dns)}${list(
    'upstream',
    open.map(({ kind, host, port, hosts, resolve }) => ({
      proxy: `${kind}://${hostAndPort(host, port)}`,
      ...(hosts === null ? {} : { hosts }),
      resolve,
    })),
  )}`;
}

function leftOut({ network, secrets }: EffectiveConfig): string[] {
  const narrow = expandRules(network).filter(isNarrow).map(formatRule);
  const with_ = (text: string, names: readonly string[]): string[] =>
    names.length === 0 ? [] : [`${text}: ${names.join(', ')}`];
  return [
    ...with_('Rules about methods and paths, which need an authority that programs inside trust', narrow),
    ...with_(
      'Single services (network.tcp)',
      network.tcp.map(({ name }) => name),
    ),
    ...with_(
      'Secrets',
      secrets.map(({ name }) => name),
    ),
    ...with_(
      'Proxies with a password (network.upstream)',
      network.upstreams.filter(({ auth }) => auth !== null).map(({ host }) => host),
    ),
  ];
}

async function writeFiles(dir: string, files: ReadonlyMap<string, string>, force: boolean): Promise<void> {
  const stat = lstatSync(dir, { throwIfNoEntry: false });
  if (stat !== undefined && !stat.isDirectory())
    throw new AgsError('project.unsuitable', `${DIRECTORY} is there, and is not a directory.`);
  const there = [...files.keys()].filter((name) => lstatSync(join(dir, name), { throwIfNoEntry: false }) !== undefined);
  if (there.length > 0 && !force)
    throw new AgsError('usage.invalid', `${there.map((name) => `${DIRECTORY}/${name}`).join(', ')} is there already.`, {
      hint: 'To replace what is there: ags devcontainer init --force',
    });
  if (stat === undefined) {
    mkdirSync(dir);
    const { uid, gid } = statSync(join(dir, '..'));
    if (process.geteuid?.() === 0) chownSync(dir, uid, gid);
  }
  const { writeWhole } = await import('../../config/file/edit-file.ts');
  for (const [name, text] of files) writeWhole(join(dir, name), text, 0o644);
}
