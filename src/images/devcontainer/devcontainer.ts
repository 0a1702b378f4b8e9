// images/devcontainer/devcontainer.ts: writes a `.devcontainer/` for a project, with the same rules as its sandboxes.
// Invariant: existing files are replaced only with --force, and nothing is written through a link.
import { existsSync, lstatSync, mkdirSync, statSync, chownSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { createHash, randomBytes } from 'node:crypto';
import { AgsError } from '../../protocol/errors.ts';
import { hostAndPort } from '../../protocol/host-name.ts';
import { formatRule, isNarrow } from '../../protocol/network-rule.ts';
import type { NetworkPolicy, NetworkRule } from '../../protocol/network.ts';
import { parseAllowList } from '../../config/network/allow-list.ts';
import type { EffectiveConfig } from '../../config/effective.ts';
import { loadConfig } from '../../config/load.ts';
import { expandRules } from '../../config/network/presets.ts';
import { NESTED_BASE, NESTED_USERS } from '../../sandbox/nested/engine-args.ts';
import { devContainerFiles } from './files.ts';
import type { DevContainer } from './compose.ts';
import { composeServices, type ComposeService } from './services.ts';
import { proxyEnvironment, withEngine } from '../../run/network/plan-network.ts';
import { findProject } from '../../run/project.ts';
import { configInput, type HostContext } from '../../run/host-context.ts';
import { replaceFile } from '../../lib/files.ts';

export interface WrittenDevContainer {
  readonly root: string;
  /** Paths relative to the root. */
  readonly files: readonly string[];
  /** Sentences about configuration that a dev container cannot have. */
  readonly leftOut: readonly string[];
  /** What the Docker daemon of the dev container can do, for display; null: it has none. */
  readonly docker: string | null;
}

export interface DevContainerWish {
  readonly services: readonly string[];
  /** With its own Docker daemon, even if the configuration has none. */
  readonly docker?: boolean;
  readonly force: boolean;
  readonly agsPackage: string;
}

export async function initDevContainer(context: HostContext, wish: DevContainerWish): Promise<WrittenDevContainer> {
  const { root } = await findProject({ ...context, configHome: context.env['XDG_CONFIG_HOME'] });
  return writeDevContainer(context, root, root, wish);
}

/** Uses the configuration of a project, and writes into its directory or another one. */
export async function writeDevContainer(
  context: HostContext,
  project: string,
  root: string,
  wish: Omit<DevContainerWish, 'force'> & { readonly force?: boolean },
): Promise<WrittenDevContainer> {
  const config = await loadConfig(configInput(context, project));
  const beside = composeServices(config.services, wish.services);
  const docker = wish.docker === true || config.docker.enabled;
  const described = describe(context, root, config, beside.services, wish.agsPackage);
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

/** Mounting a missing path would create it: a directory owned by root, in the project. */
const NO_GIT =
  'A read-only .git: the project has none yet, so a program inside can create one with hooks that your git would run. After git init: ags devcontainer init --force';

function describe(
  { stateDir, configFile }: HostContext,
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
    // In a worktree .git is a file that names the directory with git's settings and hooks.
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

/** The hosts that the Docker daemon pulls images from, through the gateway. */
function imageRules({ docker, network }: EffectiveConfig): NetworkRule[] {
  if (network.mode === 'off') return [];
  const names = [...HUB, ...docker.registries.filter((entry) => !entry.includes('='))];
  return parseAllowList(names.join('\n'), 'images for docker');
}

const HUB = ['registry-1.docker.io', 'auth.docker.io', 'production.cloudflare.docker.com'];

function withoutMirrors({ docker }: EffectiveConfig): string[] {
  return docker.registries
    .filter((entry) => entry.includes('='))
    .map(
      (entry) =>
        `The registry ${entry}: mirrors are ignored; the daemon asks every registry by its own name, through the gateway.`,
    );
}

function describeEngine(): string {
  return `a private Docker daemon beside it, rootless: user IDs ${NESTED_BASE} to ${NESTED_BASE + NESTED_USERS - 1}, which own nothing here; two capabilities that it gives up before it starts, filtered system calls, no network but the gateway. It needs Docker Compose 2`;
}

/** Files that mark a language, and its extension for Visual Studio Code. */
const EXTENSIONS: readonly (readonly [file: string, extension: string])[] = [
  ['package.json', 'dbaeumer.vscode-eslint'],
  ['pyproject.toml', 'ms-python.python'],
  ['go.mod', 'golang.go'],
  ['Cargo.toml', 'rust-lang.rust-analyzer'],
  ['pom.xml', 'redhat.java'],
  ['build.gradle', 'redhat.java'],
];

/** null: the list of hosts says everything. */
function gatewayFile({ addresses, dns, upstreams }: NetworkPolicy): string | null {
  const open = upstreams.filter(({ auth }) => auth === null);
  if (addresses.length + dns.length + open.length === 0) return null;
  const list = (key: string, values: readonly unknown[]): string =>
    values.length === 0 ? '' : `  ${key}:\n${values.map((value) => `    - ${JSON.stringify(value)}\n`).join('')}`;
  return `# Settings of the gateway besides its list of hosts, with the keys of ags.yaml.
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
    throw new AgsError('project.unsuitable', `${DIRECTORY} exists, and is not a directory.`);
  const there = [...files.keys()].filter((name) => lstatSync(join(dir, name), { throwIfNoEntry: false }) !== undefined);
  if (there.length > 0 && !force)
    throw new AgsError('usage.invalid', `${there.map((name) => `${DIRECTORY}/${name}`).join(', ')} already exists.`, {
      hint: 'To replace it: ags devcontainer init --force',
    });
  if (stat === undefined) {
    mkdirSync(dir);
    const { uid, gid } = statSync(join(dir, '..'));
    if (process.geteuid?.() === 0) chownSync(dir, uid, gid);
  }
  const { writeWhole } = await import('../../config/file/edit-file.ts');
  for (const [name, text] of files) writeWhole(join(dir, name), text, 0o644);
}

// A random name that separates one dev container's containers and volumes from all others. It is generated here and stored outside the
// project: its author controls the names of directories and files, and a clone must not get the volumes of another project.

/** Stays the same as long as the directory exists, so that rewriting the files keeps the volumes. */
function devContainerMark(stateDir: string, root: string): string {
  const { dev, ino, birthtimeNs } = statSync(root, { bigint: true });
  const key = createHash('sha256').update([root, dev, ino, birthtimeNs].join('\0')).digest('hex').slice(0, 32);
  const directory = join(stateDir, 'devcontainers');
  const kept = readKept(join(directory, key));
  if (kept !== null) return kept;
  const mark = randomBytes(6).toString('hex');
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  replaceFile(join(directory, key), mark);
  return mark;
}

function readKept(file: string): string | null {
  try {
    const text = readFileSync(file, 'utf8');
    return /^[0-9a-f]{12}$/.test(text) ? text : null;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}
