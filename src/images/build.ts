// images/build.ts: builds the images of sandboxes: the base image of ags, or the project's Dockerfile.
// Invariant: steps of a build reach only what the rules allow, through the gateway. Labels record the inputs of an image, and an image
// with the same inputs is not built again.
import { createHash } from 'node:crypto';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Agent } from '../agents/agent.ts';
import type { EffectiveConfig } from '../config/effective.ts';
import { visible } from '../lib/sanitize.ts';
import { AgsError } from '../protocol/errors.ts';
import type { NetworkPolicy } from '../protocol/network.ts';
import { tellSlowly } from '../sandbox/engine/build.ts';
import { IMAGE_LABEL, inspectImage, MAKER_LABEL } from '../sandbox/engine/images.ts';
import type { Engine } from '../sandbox/engine/engine.ts';
import { ENGINE_KINDS } from '../sandbox/engine/engine-kinds.ts';
import type { Image } from '../sandbox/spec/image.ts';
import { userMark } from '../sandbox/engine/owner.ts';
import { makeOneOff } from '../run/one-off-sandbox.ts';
import { BASE_IMAGE, baseDockerfile, DEBIAN } from './wanted/base-image.ts';
import { withBuildNetwork } from './build-network.ts';
import { canMakeDebian, debianImage } from './debian-root.ts';
import { fetchedByEngine, imageFromFile, readOtherwise, runWithOptions } from './wanted/dockerfile.ts';
import { findRegistry } from '../agent-setup/npm-registry.ts';
import type { BuiltImage } from './wanted/project-image.ts';
import { systemBundle } from '../run/network/system-bundle.ts';
import type { HostContext } from '../run/host-context.ts';

export interface BuildOptions {
  /** Build every step again. */
  readonly noCache: boolean;
  /** Fetch the base image again. */
  readonly pull: boolean;
  say(text: string): void;
  onStep(step: BuildStep): void;
}

export interface BuildStep {
  readonly at: number;
  readonly of: number;
  readonly text: string;
}

export interface Built {
  readonly image: Image;
  /** The image existed already, built from the same inputs. */
  readonly already: boolean;
}

/** `from`: an image name, or `packages`; null: what is available. */
export async function buildBase(
  context: HostContext,
  engine: Engine,
  config: EffectiveConfig,
  wish: { readonly agents: readonly Agent[]; readonly from: string | null },
  options: BuildOptions,
): Promise<Built> {
  const arch = context.nodeArch === 'arm64' ? 'arm64' : 'x64';
  const base = await standsOn(context, engine, wish.from, options);
  const text = baseDockerfile({ from: base.id, arch, agents: wish.agents });
  const registry = await findRegistry(context);
  const bundle = `${systemBundle(context)}\n`;
  return build(context, engine, {
    reference: BASE_IMAGE,
    what: 'base',
    key: createHash('sha256')
      .update(JSON.stringify([text, bundle]))
      .digest('hex')
      .slice(0, 32),
    labels: { 'ags.from': `${base.reference} ${base.id}` },
    text,
    files: { 'bundle.pem': bundle },
    context: null,
    args: ['--build-arg', `npm_config_registry=${registry.env['npm_config_registry'] ?? ''}`],
    network: withRegistries(config.network, registry.network),
    options,
  });
}

export async function buildProject(
  context: HostContext,
  engine: Engine,
  config: EffectiveConfig,
  wanted: BuiltImage,
  project: string,
  options: BuildOptions,
): Promise<Built> {
  refuseLines(engine, wanted.dockerfile, wanted.text);
  const otherwise = readOtherwise(wanted.text);
  if (otherwise !== null)
    throw new AgsError(
      'image.failed',
      `${wanted.dockerfile} has a line that can be read in more than one way: ${visible(otherwise.slice(0, 200))}`,
      { hint: 'Write FROM and the full image name on one line, and "# escape=" on the first line.' },
    );
  const bases: Image[] = [];
  for (const name of wanted.from) {
    if (name.includes('$'))
      throw new AgsError(
        'image.failed',
        `${wanted.dockerfile} is based on an image whose name is not known: ${visible(name)}`,
        {
          hint: 'Give the variable a value before the first FROM: ARG NAME=value',
        },
      );
    const there = options.pull ? null : await inspectImage(engine, name);
    const base = there ?? (await pullImage(engine, name, options.say));
    refuseLines(engine, `The image ${name} (ONBUILD)`, base.onBuild.join('\n'));
    bases.push(base);
  }
  const from = bases.map(({ reference, id }) => `${reference} ${id}`).join(', ');
  return build(context, engine, {
    reference: wanted.reference,
    what: 'project',
    key: wanted.key,
    labels: { 'ags.from': from, 'ags.project': project },
    text: wanted.text,
    files: {},
    context: { directory: wanted.context, files: wanted.files },
    args: [],
    network: withRegistries(config.network, {}),
    options,
  });
}

function refuseLines(engine: Engine, where: string, text: string): void {
  const fetched = fetchedByEngine(text);
  if (fetched !== null)
    throw new AgsError(
      'image.failed',
      `${where} has a line that makes the engine fetch something itself, past your rules: ${visible(fetched.slice(0, 200))}`,
      {
        hint: 'Fetch it in a step, where your rules apply: RUN curl -O <address>. For project files use COPY.',
      },
    );
  // Docker's builder ignores options of RUN, and its daemon accepts no images in files.
  if (ENGINE_KINDS[engine.name].daemon) return;
  const line = runWithOptions(text) ?? imageFromFile(text);
  if (line === null) return;
  throw new AgsError(
    'image.failed',
    `${where} has a line that ags does not allow in a build: ${visible(line.slice(0, 200))}`,
    {
      hint: 'RUN must have no options (--network, --mount), and FROM must name an image, not a file or an address.',
    },
  );
}

async function standsOn(
  context: HostContext,
  engine: Engine,
  from: string | null,
  options: BuildOptions,
): Promise<Image> {
  const name = from ?? DEBIAN.image;
  if (name === 'packages') return debianImage(context, engine, options.pull || options.noCache, options.say);
  const there = options.pull ? null : await inspectImage(engine, name);
  if (there !== null) return there;
  if (from === null && !options.pull && canMakeDebian()) {
    options.say(`The engine does not have ${name}: building a base from Debian packages instead (--pull fetches it).`);
    return debianImage(context, engine, false, options.say);
  }
  return pullImage(engine, name, options.say);
}

/** The engine pulls over this machine's own network, without a sandbox and a gateway. */
export async function pullImage(engine: Engine, reference: string, say: (text: string) => void): Promise<Image> {
  say(`${engine.name} is pulling ${reference} ...`);
  const { exitCode, last } = await tellSlowly(engine, ['pull', '--', reference], () => undefined);
  const image = exitCode === 0 ? await inspectImage(engine, reference) : null;
  if (image !== null) return image;
  throw new AgsError('image.failed', `${reference} could not be pulled: ${visible(last.at(-1) ?? '')}`, {
    hint: 'Without a registry, build the base from packages: ags image build --from packages',
  });
}

interface Recipe {
  readonly reference: string;
  readonly what: 'base' | 'project';
  readonly key: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly text: string;
  readonly files: Readonly<Record<string, string>>;
  readonly context: { readonly directory: string; readonly files: readonly string[] } | null;
  readonly args: readonly string[];
  readonly network: Partial<NetworkPolicy>;
  readonly options: BuildOptions;
}

const DOCKERFILE = '.ags-Dockerfile';

async function build(context: HostContext, engine: Engine, recipe: Recipe): Promise<Built> {
  const { options, reference } = recipe;
  const labels = {
    ...recipe.labels,
    [IMAGE_LABEL]: recipe.what,
    'ags.key': recipe.key,
    'ags.user': String(context.uid),
  };
  // This label is not compared: an image from before it existed need not be built again.
  const marked = { ...labels, [MAKER_LABEL]: userMark() };
  const there = await inspectImage(engine, reference);
  const same = there !== null && Object.entries(labels).every(([name, value]) => there.labels[name] === value);
  if (there !== null && same && !options.noCache && !options.pull) return { image: there, already: true };
  const dir = makeOneOff(context.cacheDir);
  try {
    const own = { ...recipe.files, [DOCKERFILE]: recipe.text };
    for (const [name, content] of Object.entries(own)) writeFileSync(join(dir, name), content);
    const { result, denied } = await withBuildNetwork(context, engine, dir, recipe.network, options.say, (network) =>
      tellSlowly(
        engine,
        [
          'build',
          '--file',
          DOCKERFILE,
          '--tag',
          reference,
          '--force-rm',
          ...network.args,
          ...recipe.args,
          ...Object.entries(marked).flatMap(([name, value]) => ['--label', `${name}=${value}`]),
          ...(options.noCache ? ['--no-cache'] : []),
          '-',
        ],
        (line) => tellStep(line, Object.keys(marked).length, options),
        { argv: packArgv(dir, Object.keys(own), recipe.context), env: { PATH: '/usr/bin:/bin', LC_ALL: 'C' } },
        network,
      ),
    );
    const image = result.exitCode === 0 ? await inspectImage(engine, reference) : null;
    if (image !== null) return { image, already: false };
    throw buildFailed(
      reference,
      result.last,
      denied.map(({ host }) => host),
    );
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

function packArgv(dir: string, own: readonly string[], context: Recipe['context']): string[] {
  const list = join(dir, '.list');
  const taken = (context?.files ?? []).filter((path) => path !== DOCKERFILE);
  writeFileSync(list, taken.map((path) => `${path}\0`).join(''));
  const ours = ['tar', '--owner=0', '--group=0', '--numeric-owner', '-cf', '-', '-C', dir, '--', ...own];
  if (context === null || taken.length === 0) return ours;
  return [
    ...ours.filter((word) => word !== '--'),
    '-C',
    context.directory,
    '--null',
    '--verbatim-files-from',
    '-T',
    list,
  ];
}

/** The last steps of the last stage are our labels. */
function tellStep(line: string, labels: number, { onStep }: BuildOptions): void {
  const [, stage, stages, at, all, text] = /^(?:\[(\d+)\/(\d+)\] )?step (\d+)\/(\d+) ?: (.*)$/i.exec(line) ?? [];
  const of = Number(all) - (stage === stages ? labels : 0);
  if (text !== undefined && Number(at) <= of) onStep({ at: Number(at), of, text: visible(text) });
}

function buildFailed(reference: string, last: readonly string[], denied: readonly string[]): AgsError {
  const said = last.filter(
    (line) => line.trim() !== '' && !/^(DEPRECATED|\s+BuildKit|\s+environment-var| --->)/.test(line),
  );
  const refused = denied.length === 0 ? '' : ` Denied connections: ${[...new Set(denied)].map(visible).join(', ')}.`;
  const lines = said.slice(-8).map((line) => `  ${visible(line.slice(0, 300))}`);
  return new AgsError('image.failed', `${reference} could not be built.${refused}\n${lines.join('\n')}`, {
    hint:
      denied.length === 0
        ? 'Build steps can reach what "ags net rules" shows.'
        : `Allow it: ags allow ${visible(denied[0] ?? '')}`,
  });
}

/** The configured rules, and those for package registries. */
function withRegistries(own: NetworkPolicy, more: Partial<NetworkPolicy>): Partial<NetworkPolicy> {
  return {
    ...more,
    presets: [...new Set([...own.presets, 'debian', 'npm'])],
    rules: [...own.rules, ...(more.rules ?? [])],
  };
}
