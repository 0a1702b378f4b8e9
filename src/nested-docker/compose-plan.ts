// nested-docker/compose-plan.ts: plans names, addresses and listeners for the services of a project's compose files. Starts nothing.
// Invariant: the files are the user's: those of a commit that the user had or, for a command over the user's own files, those files;
// never an agent's. The user's own override is read from the checkout, and never through a link.
import { lstatSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import { AgsError } from '../protocol/errors.ts';
import type { ComposeConfig } from '../config/effective.ts';
import { errorCode } from '../lib/error-code.ts';
import { openDirectory } from '../lib/descend.ts';
import { removeTree } from '../lib/files.ts';
import { visible } from '../lib/sanitize.ts';
import { clientDir, findComposeClient, OVERRIDE_INSIDE, projectInside, runClient } from './compose-client.ts';
import { readComposed } from './compose-config.ts';
import { prepareSnapshot } from '../workspace/prepare-snapshot.ts';
import type { TaskPaths } from '../store/layout.ts';
import type { PlannedCompose } from '../run/planned-services.ts';
import { planNetworkAndServices } from '../run/plan-run.ts';
import type { RunPlan } from '../run/run-plan.ts';
import { readBelow, type SeedSource } from '../workspace/seed-files.ts';
import type { HostContext } from '../run/host-context.ts';

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
