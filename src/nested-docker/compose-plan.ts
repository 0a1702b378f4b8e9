// nested-docker/compose-plan.ts: plans names, addresses and listeners for the services of a project's compose files. Starts nothing.
// The client's merged view of those files (`config`) is untrusted: anything of an unexpected form is left out or refused.
// Invariant: the files are the user's: those of a commit that the user had or, for a command over the user's own files, those files;
// never an agent's. The user's own override is read from the checkout, and never through a link.
import { lstatSync, realpathSync } from 'node:fs';
import { join, isAbsolute, relative } from 'node:path';
import { AgsError } from '../protocol/errors.ts';
import type { ComposeConfig } from '../config/effective.ts';
import { errorCode } from '../lib/error-code.ts';
import { removeTree } from '../lib/files.ts';
import { openDirectory } from '../lib/descend.ts';
import { visible } from '../lib/sanitize.ts';
import { clientDir, findComposeClient, OVERRIDE_INSIDE, projectInside, runClient } from './compose-client.ts';
import { prepareSnapshot } from '../workspace/prepare-snapshot.ts';
import type { TaskPaths } from '../store/layout.ts';
import { type PlannedCompose, composeAddress, type ComposedService } from '../run/planned-services.ts';
import { planNetworkAndServices } from '../run/plan-run.ts';
import type { RunPlan } from '../run/run-plan.ts';
import { readBelow, type SeedSource } from '../workspace/seed-files.ts';
import type { HostContext } from '../run/host-context.ts';
import { COMPOSE_NAME } from '../protocol/config/words.ts';

interface About {
  readonly task: string;
  readonly paths: Pick<TaskPaths, 'services'>;
  readonly signal: AbortSignal;
}

/** The plan with its compose services; unchanged if there are none. */
export async function withCompose(
  context: HostContext,
  plan: RunPlan,
  source: SeedSource,
  about: About,
): Promise<RunPlan> {
  const { compose: wish } = plan.config;
  if (wish === null) return plan;
  const possible = context.uid === 0 || plan.namespaces;
  if (!possible)
    throw new AgsError(
      'service.unavailable',
      'Compose files cannot be started here: only bwrap may create namespaces.',
      {
        hint: 'For the reason and the fix: ags doctor. Or start without them: --no-compose',
      },
    );
  const compose = await planCompose(context, plan, wish, source, about);
  const taken = compose.list.find(({ name }) => plan.config.services.some((service) => service.name === name));
  if (taken !== undefined)
    throw new AgsError('config.invalid', `"services" and the compose files both have a service called ${taken.name}.`, {
      hint: `Leave one out: services: { ${taken.name}: false }, or "compose.services" without it.`,
    });
  return { ...plan, ...(await planNetworkAndServices(context, plan.config, possible, compose)) };
}

async function planCompose(
  context: HostContext,
  plan: RunPlan,
  wish: ComposeConfig,
  source: SeedSource,
  about: About,
): Promise<PlannedCompose> {
  const client = findComposeClient();
  const seen = await filesOf(context, plan, source, about);
  const project = projectInside(plan);
  const override = readOverride(plan, wish);
  const named = wish.files.length > 0 ? wish.files : usualFiles(seen.layers);
  if (named.length === 0)
    throw new AgsError('service.unavailable', `There is no compose file ${inWords(source)}.`, {
      hint: 'ags looks for compose.yaml and docker-compose.yaml. Name another one: compose: { files: [deploy/compose.yaml] }. Or start without it: --no-compose',
    });
  const files = [...named.map((file) => join(project, file)), ...(override === null ? [] : [OVERRIDE_INSIDE])];
  const base = {
    ...seen,
    client: [
      client,
      ...files.flatMap((file) => ['--file', file]),
      ...wish.profiles.flatMap((profile) => ['--profile', profile]),
    ],
    env: wish.env,
    override,
    chosen: wish.services,
    timeoutSeconds: wish.timeoutSeconds,
  };
  const text = await askClient(context, plan, base, about);
  const { parseComposeText } = await import('../config/compose-text.ts');
  return {
    ...base,
    ...readComposed(parseComposeText(text), { project, profiles: wish.profiles, chosen: wish.services }),
  };
}

const MOST_BYTES = 4 * 2 ** 20;
const CONFIG_MS = 60_000;

/** The client's merged view of all files. */
async function askClient(
  context: HostContext,
  plan: RunPlan,
  compose: Omit<PlannedCompose, 'list' | 'shared'>,
  about: About,
): Promise<string> {
  const dir = clientDir(about.paths);
  const said = { stdout: '', stderr: '' };
  const late = AbortSignal.timeout(CONFIG_MS);
  try {
    const code = await runClient({
      context,
      plan,
      task: about.task,
      dir,
      compose,
      argv: [...compose.client, 'config'],
      docker: null,
      onOutput: (stream, chunk) => void (said[stream] = (said[stream] + chunk.toString('utf8')).slice(0, MOST_BYTES)),
      signal: AbortSignal.any([about.signal, late]),
    });
    if (code === 0) return said.stdout;
    const why = said.stderr
      .trim()
      .split('\n')
      .slice(-LINES)
      .map((line) => visible(line));
    throw new AgsError('service.unavailable', `The compose files cannot be used:\n${why.join('\n')}`, {
      hint: 'Files outside of the project, hidden files (.env) and your environment are not available; set variables with: compose: { env: { TAG: "15" } }',
    });
  } catch (error) {
    if (!late.aborted || about.signal.aborted) throw error;
    throw new AgsError('service.unavailable', `Docker Compose did not read its files within ${CONFIG_MS / 1000} s.`, {
      hint: 'Start without them: --no-compose',
    });
  } finally {
    removeTree(dir);
  }
}

const LINES = 5;

async function filesOf(
  context: HostContext,
  plan: RunPlan,
  source: SeedSource,
  { task, signal }: About,
): Promise<Pick<PlannedCompose, 'layers' | 'hidden'>> {
  // The repository's git settings may contain a token in a URL.
  if (source === 'live') return { layers: [plan.project.root], hidden: [...plan.hidden.paths, '.git'] };
  const { prepared } = await prepareSnapshot(context, plan, {
    commit: source.commit,
    task,
    onStep: () => undefined,
    onOutput: () => undefined,
    signal,
  });
  return { layers: prepared.layers, hidden: prepared.hidden };
}

const NAMES = ['compose', 'docker-compose'].flatMap((name) => [`${name}.yaml`, `${name}.yml`]);
const OVERRIDES = ['compose', 'docker-compose'].flatMap((name) => [`${name}.override.yaml`, `${name}.override.yml`]);

function usualFiles(layers: readonly string[]): string[] {
  const isThere = (name: string): boolean => {
    const layer = layers.find((one) => lstatSync(join(one, name), { throwIfNoEntry: false }) !== undefined);
    return layer !== undefined && lstatSync(join(layer, name)).isFile();
  };
  const file = NAMES.find(isThere);
  return [file, file === undefined ? undefined : OVERRIDES.find(isThere)].filter((name) => name !== undefined);
}

const MOST_OVERRIDE = 2 ** 20;

function readOverride({ project }: RunPlan, { override }: ComposeConfig): string | null {
  try {
    using root = openDirectory(realpathSync(project.root));
    return readBelow(root, override.split('/'), MOST_OVERRIDE).toString('utf8');
  } catch (error) {
    if (errorCode(error) === 'ENOENT' || errorCode(error) === 'ENOTDIR') return null;
    throw new AgsError('service.unavailable', `${override} cannot be read: ${String(errorCode(error) ?? error)}.`, {
      hint: 'It must be a regular file of at most 1 MB, not a link.',
    });
  }
}

function inWords(source: SeedSource): string {
  return source === 'live' ? 'in this project' : `in commit ${source.commit.slice(0, 7)}`;
}

type Values = Readonly<Record<string, unknown>>;

const MOST_SERVICES = 100;
const MOST_PORTS = 64;

/** `parsed` is the document; `project` is the project's path inside the client's sandbox. */
export function readComposed(
  parsed: unknown,
  want: { readonly project: string; readonly profiles: readonly string[]; readonly chosen: readonly string[] },
): { list: ComposedService[]; shared: string[] } {
  const all = new Map(
    Object.entries(valuesOf(valuesOf(parsed)['services'])).map(([name, one]) => [name, valuesOf(one)]),
  );
  const strange = [...all.keys()].find((name) => !COMPOSE_NAME.test(name) || /^(localhost|sandbox)$/i.test(name));
  if (strange !== undefined || all.size > MOST_SERVICES)
    throw new AgsError(
      'service.unavailable',
      strange === undefined
        ? `The compose files have ${all.size} services; ${MOST_SERVICES} are the most.`
        : `A service of the compose files cannot be called ${JSON.stringify(strange.slice(0, 80))} inside.`,
    );
  for (const name of want.chosen)
    if (!all.has(name))
      throw new AgsError('service.unavailable', `The compose files have no service "${name}".`, {
        hint: `They have ${[...all.keys()].join(', ')}. Correct "compose.services".`,
      });
  const active = [...all].filter(([, one]) => isActive(one, want.profiles)).map(([name]) => name);
  const wanted = withDependencies(all, want.chosen.length === 0 ? active : want.chosen);
  const list = [...wanted].toSorted().map((name, i) => ({
    name,
    address: composeAddress(i),
    ports: portsOf(all.get(name) ?? {}),
  }));
  const shared = new Set([...wanted].flatMap((name) => sharedOf(all.get(name) ?? {}, want.project)));
  return { list, shared: [...shared].toSorted() };
}

/** Version 2 of the client lists only active services, version 1 lists all. */
function isActive(one: Values, profiles: readonly string[]): boolean {
  const own = listOf(one['profiles']);
  return own.length === 0 || own.some((profile) => profiles.includes(textOf(profile)));
}

function withDependencies(all: ReadonlyMap<string, Values>, names: readonly string[]): Set<string> {
  const found = new Set<string>();
  const add = (name: string): void => {
    const one = all.get(name);
    if (one === undefined || found.has(name)) return;
    found.add(name);
    const needs = one['depends_on'];
    for (const need of Array.isArray(needs) ? listOf(needs) : Object.keys(valuesOf(needs))) add(textOf(need));
  };
  for (const name of names) add(name);
  return found;
}

/** TCP ports: published ones by their number in the container, and exposed ones. */
function portsOf(one: Values): number[] {
  const ports = [...listOf(one['ports']), ...listOf(one['expose'])].flatMap((entry) => {
    const { target, protocol } = valuesOf(entry);
    if (target !== undefined) return protocol === 'udp' ? [] : range(textOf(target));
    const [places = '', kind = 'tcp'] = textOf(entry).split('/');
    return kind === 'tcp' ? range(places.split(':').at(-1) ?? '') : [];
  });
  return [...new Set(ports)].slice(0, MOST_PORTS);
}

/** "80", or "8000-8010". */
function range(text: string): number[] {
  const [, first, last = first] = /^(\d{1,5})(?:-(\d{1,5}))?$/.exec(text) ?? [];
  const [from, to] = [Number(first), Number(last)];
  if (first === undefined || from < 1 || to > 65_535) return [];
  return Array.from({ length: Math.min(Math.max(to - from + 1, 0), MOST_PORTS) }, (_, i) => from + i);
}

/** Directories and files of the project; paths outside of it are not shared with the engine. */
function sharedOf(one: Values, project: string): string[] {
  return listOf(one['volumes']).flatMap((entry) => {
    const { type, source } = valuesOf(entry);
    const from = type === 'bind' ? textOf(source) : typeof entry === 'string' ? (entry.split(':')[0] ?? '') : '';
    if (!isAbsolute(from)) return [];
    const path = relative(project, from);
    return path === '..' || path.startsWith('../') ? [] : [path === '' ? '.' : path];
  });
}

function valuesOf(value: unknown): Values {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Values) : {};
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? (value as unknown[]) : [];
}

function textOf(value: unknown): string {
  return typeof value === 'string' || typeof value === 'number' ? String(value) : '';
}
