// attack/attacked-project.ts: sets up the attacked project: a project of ours in the user's home, configured like the user's tasks, with
// canaries around it that no sandbox may reach.
// Invariant: the user's configuration decides about the sandbox, but only files of ours can be lost. Nothing is left afterwards.
import { chmodSync, copyFileSync, existsSync, mkdirSync, mkdtempSync, realpathSync, writeFileSync } from 'node:fs';
import { networkInterfaces, tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import type { ConfigFile } from '../protocol/config/config.ts';
import { AgsError } from '../protocol/errors.ts';
import { parseRule } from '../protocol/network-rule.ts';
import type { NetworkRule } from '../protocol/network.ts';
import { LISTENERS, type Places } from './table/attack.ts';
import { attackedNetwork, PROXY_VARIABLE, SECRET_VARIABLE, type AttackedNetwork } from './table/attacked-network.ts';
import {
  careless,
  difference,
  openCanaries,
  secretWord,
  snapshot,
  TRACKED,
  UNTRACKED_SECRETS,
} from './table/canaries.ts';
import { DOMAIN, openOrigin, type Origin } from './table/origin.ts';
import { SPY } from './table/services.ts';
import type { ConfigFlags, EffectiveConfig } from '../config/effective.ts';
import { createAuthority, type Authority } from '../gateway/intercept/certificate.ts';
import { commitSample } from '../git/staging/new-repository.ts';
import { removeTree } from '../lib/files.ts';
import { STAGE_PREFIX } from '../store/layout.ts';
import { configure, settingsOf } from './settings.ts';
import { serviceAddress } from '../run/planned-services.ts';
import { planRun, type PlanOptions } from '../run/plan-run.ts';
import type { RunPlan } from '../run/run-plan.ts';
import type { HostContext } from '../run/host-context.ts';

export interface AttackedProject extends AsyncDisposable {
  readonly dir: string;
  /** The caller's, with another working directory and state directory. */
  readonly context: HostContext;
  /** The plan of the user's own sandboxes, and that of the attacked one. */
  readonly own: RunPlan;
  readonly plan: RunPlan;
  readonly flags: ConfigFlags;
  /** The settings of the user's project, which every further project here gets too. */
  readonly settings: ConfigFile | null;
  /** For sandboxes over this project; further flags may narrow the limits. */
  readonly options: PlanOptions;
  /** The same without services and nested Docker. */
  readonly bare: PlanOptions;
  readonly places: Places;
  readonly origin: Origin;
  /** Part of every secret. */
  readonly word: string;
  /** A sentence for everything around the project that was touched since the start. */
  touched(): string[];
}

export async function openStage(caller: HostContext, flags: ConfigFlags): Promise<AttackedProject> {
  const own = await ownPlan(caller, flags);
  const undo: Undo = [];
  try {
    return await setStage(caller, flags, own, undo);
  } catch (error) {
    await takeBack(undo);
    throw error;
  }
}

type Undo = (() => void | PromiseLike<void>)[];

async function takeBack(undo: Undo): Promise<void> {
  for (const step of undo.splice(0).toReversed()) await step();
}

async function setStage(
  caller: HostContext,
  flags: ConfigFlags,
  own: RunPlan | null,
  undo: Undo,
): Promise<AttackedProject> {
  const dir = makeDirectory(caller.home, undo);
  const outside = makeDirectory(realpathSync(tmpdir()), undo);
  chmodSync(outside, 0o755);
  const word = secretWord();
  const [project, sibling, tools] = ['project', 'sibling', 'tools'].map((name) => join(dir, name)) as [
    string,
    string,
    string,
  ];
  const context = worldAt(caller, dir, project);
  await plant({ project, sibling, tools, outside, word });
  const users = own ?? (await planRun({ ...context, env: caller.env }, flags, { live: false }));
  const serves = users.config.services.length > 0;
  const settings = await settingsOf(caller, own);
  await configure(context, project, settings, serves);
  const uid = caller.uid === 0 ? users.user.uid : caller.uid;
  const sockets = [
    join(dir, 'agent.sock'),
    join(outside, 'agent.sock'),
    ...['agent.sock', 'sub/agent.sock', 'node_modules/agent.sock'].map((path) => join(project, path)),
  ];
  const canaries = await openCanaries({ word, uid, outside, streams: sockets, toolDir: tools });
  undo.push(() => canaries[Symbol.asyncDispose]());
  const secret = secretOf(word);
  const { origin, authorities } = await openHosts(dir, secret);
  undo.push(() => origin[Symbol.asyncDispose]());
  const attacked = {
    ...context,
    env: {
      ...context.env,
      ...careless(word, sockets, canaries.places.LOOPBACK_PORT),
      [SECRET_VARIABLE]: secret,
      [PROXY_VARIABLE]: `user:${word}`,
      NODE_EXTRA_CA_CERTS: authorities,
    },
  };
  const network = attackedNetwork(origin, Number(canaries.places.LOOPBACK_PORT));
  const options: PlanOptions = {
    adjust: (here) => attackedConfig(own?.config ?? here, here, relative(caller.home, tools), network),
    pinned: own?.image ?? undefined,
  };
  const bare: PlanOptions = { ...options, adjust: async (here) => withoutMore((await options.adjust?.(here)) ?? here) };
  const plan = await planRun(attacked, flags, options);
  const online = plan.config.network.mode !== 'off';
  const left = [join(outside, 'log')];
  const before = snapshot([sibling, tools, outside, project], left);
  return {
    dir,
    context: attacked,
    own: users,
    plan,
    flags,
    settings,
    options,
    bare,
    origin,
    word,
    places: {
      ...canaries.places,
      SIBLING: sibling,
      HOST_TMP: join(outside, 'secret'),
      TOOLS: plan.image === null ? tools : '',
      HOME: caller.home,
      PROJECT: project,
      STATE: context.stateDir,
      VARIABLES: variablesOf(plan).join(' '),
      SHOWN: plan.config.mounts.map(({ path }) => path).join(' '),
      NETWORK: online ? 'on' : 'off',
      ECHO: online ? `echo.${DOMAIN}:${origin.port}` : '',
      SECURE: String(origin.securePort),
      SERVICE: serves ? serviceAddress(0) : '',
      ENGINE: plan.config.docker.enabled ? 'tcp://127.0.0.1:2375' : '',
      DOMAIN,
      ...LISTENERS,
    },
    touched: () => [
      ...difference(before, snapshot([sibling, tools, outside, project], left)),
      ...canaries.noticed(),
      ...[...origin.asked].filter((name) => !name.endsWith(`.${DOMAIN}`)).map((name) => `the name server: ${name}`),
      ...origin.wrong,
    ],
    [Symbol.asyncDispose]: () => takeBack(undo),
  };
}

/** The plan of a task in the user's project; null: the current directory is in no project, and the user's own configuration counts. */
async function ownPlan(context: HostContext, flags: ConfigFlags): Promise<RunPlan | null> {
  try {
    return await planRun(context, flags, { live: false });
  } catch (error) {
    if (error instanceof AgsError && error.code === 'project.unsuitable') return null;
    throw error;
  }
}

function makeDirectory(parent: string, undo: Undo): string {
  try {
    const dir = realpathSync(mkdtempSync(join(parent, `${STAGE_PREFIX}${process.pid}-`)));
    undo.push(() => removeTree(dir));
    return dir;
  } catch (error) {
    throw new AgsError('attack.impossible', `Cannot create a directory for the attacks in ${parent}.`, {
      hint: 'ags creates a temporary directory there. Is it writable?',
      cause: error,
    });
  }
}

function worldAt(caller: HostContext, dir: string, project: string): HostContext {
  const [stateHome, cacheHome] = [join(dir, 'state'), join(dir, 'cache')];
  const [stateDir, cacheDir] = [join(stateHome, 'ags'), join(cacheHome, 'ags')];
  for (const path of [stateDir, cacheDir, project]) mkdirSync(path, { recursive: true, mode: 0o755 });
  // These files record that a sandbox works here, which need not be tested again.
  for (const name of ['ready.json', 'ready-docker.json', 'ready-podman.json'])
    if (existsSync(join(caller.cacheDir, name))) copyFileSync(join(caller.cacheDir, name), join(cacheDir, name));
  return {
    ...caller,
    cwd: project,
    stateDir,
    cacheDir,
    env: { ...caller.env, XDG_STATE_HOME: stateHome, XDG_CACHE_HOME: cacheHome },
  };
}

async function plant(at: Record<'project' | 'sibling' | 'tools' | 'outside' | 'word', string>): Promise<void> {
  const write = (path: string, content: string, mode = 0o644): void => {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, content, { mode });
  };
  const inProject = (path: string, content: string): void => write(join(at.project, path), content);
  inProject('README.md', '# project\n');
  inProject('src/a.txt', 'one\ntwo\nthree\n');
  for (const path of TRACKED) inProject(path, 'ordinary\n');
  await commitSample(at.project);
  for (const path of UNTRACKED_SECRETS) inProject(path, `${at.word}\n`);
  write(join(at.project, '.git/config'), `${SETTINGS}[http]\n\textraHeader = Authorization: ${at.word}\n`);
  write(join(at.sibling, 'private.txt'), `${at.word}\n`);
  write(join(at.tools, 'tool'), '#!/bin/sh\necho tool\n', 0o755);
  write(join(at.outside, 'secret'), `${at.word}\n`);
}

const SETTINGS =
  '[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n[remote "origin"]\n\turl = https://token@example.test/x.git\n';

/** With characters that JSON and URLs write as escapes. */
function secretOf(word: string): string {
  return `${word}/"`;
}

/** The hosts around the sandbox, and a file with the authority that signs the genuine ones. */
async function openHosts(dir: string, secret: string): Promise<{ origin: Origin; authorities: string }> {
  const [trusted, forger] = ['ags doctor --attack', 'nobody'].map((commonName) =>
    createAuthority({ commonName, days: 1, now: new Date() }),
  ) as [Authority, Authority];
  const authorities = join(dir, 'authorities.pem');
  writeFileSync(authorities, trusted.certificatePem);
  const own = Object.values(networkInterfaces()).flatMap((all) =>
    (all ?? []).filter(({ internal, family }) => !internal && family === 'IPv4').map(({ address }) => address),
  );
  const origin = await openOrigin({
    secret,
    certificateFor: (host, known) => (known ? trusted : forger).contextFor(host),
    ownAddresses: own.length > 0 ? own.slice(0, 4) : ['127.0.0.1'],
  });
  return { origin, authorities };
}

/** The user's configuration, with a tool directory, hosts and secrets of ours, and without anything that starts more than the sandbox. */
function attackedConfig(
  own: EffectiveConfig,
  here: EffectiveConfig,
  toolDir: string,
  attacked: AttackedNetwork,
): EffectiveConfig {
  const rule = (action: NetworkRule['action'], text: string): NetworkRule => {
    const parsed = parseRule(text);
    if ('problem' in parsed) throw new Error(`${text}: ${parsed.problem}`);
    return { action, ...parsed, origin: 'ags doctor --attack' };
  };
  const { network } = own;
  return {
    ...own,
    limits: here.limits,
    toolDirs: [...own.toolDirs, toolDir],
    services: here.services.filter(({ name }) => name === SPY.name),
    compose: null,
    // Compose files need nested Docker.
    docker: { ...own.docker, enabled: own.docker.enabled || own.compose !== null },
    secrets: attacked.secrets,
    network: {
      ...network,
      // Requests that ask are denied until they are answered, and here they never are.
      mode: network.mode === 'record' ? 'on' : network.mode,
      rules: [
        ...network.rules,
        ...attacked.allow.map((text) => rule('allow', text)),
        ...attacked.deny.map((text) => rule('deny', text)),
      ],
      addresses: [...network.addresses, ...attacked.addresses],
      dns: attacked.dns,
      upstreams: attacked.upstreams,
      publish: [],
    },
  };
}

function withoutMore(config: EffectiveConfig): EffectiveConfig {
  return { ...config, services: [], docker: { ...config.docker, enabled: false } };
}

function variablesOf({ config, network }: RunPlan): string[] {
  const passed = config.envPass.map((name) => name.replace(/_\*$/, '_'));
  return [...Object.keys(network.env), ...Object.keys(config.envSet), ...passed, ...config.pathEnv];
}
