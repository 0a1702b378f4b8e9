// agent-setup/agents-inside.ts: the agents in the PATH of a sandbox, and which of them are signed in there.
// Invariants: a sandbox has no key, only the endpoint of a model, and only for agents that it was started for: the command is the
// agent, the user named it, or the sandbox is a plain shell. An agent's own sandbox signs in no other agent.
import type { Agent } from '../agents/agent.ts';
import { AGENTS } from '../agents/agents.ts';
import { PROGRAM_NAMES } from '../agents/names.ts';
import { AgsError } from '../protocol/errors.ts';
import type { EffectiveConfig } from '../config/effective.ts';
import { visible } from '../lib/sanitize.ts';
import { NOTHING_MORE, type MoreInside } from '../sandbox/spec/plan-sandbox.ts';
import { checkSecret } from '../run/network/open-gateway.ts';
import type { RunPlan } from '../run/run-plan.ts';
import type { HostContext } from '../run/host-context.ts';
import { endpointOf, withAgent } from './agent-network.ts';
import { isAgent, isPlainShell, type AgentsWish } from './agents-wish.ts';
import { findSignIn, type FoundSignIn } from './credentials.ts';
import { LAUNCHERS_INSIDE, launchersDir, writeLaunchers, type Launcher } from './launchers.ts';
import { endpointFor } from './own-endpoint.ts';
import type { AgentProgram } from './agent-program.ts';
import { findProgram } from './programs.ts';
import { readSettings } from './read-settings.ts';

export interface AgentsInside {
  /** Adds the model endpoints to the configuration. */
  adjust(config: EffectiveConfig): Promise<EffectiveConfig>;
  /** Names of the agents that are signed in. */
  signedIn(plan: RunPlan): string[];
  offer(plan: RunPlan, runDir: string): Promise<OfferedAgents>;
}

export interface OfferedAgents {
  readonly more: MoreInside;
  /** Writes the scripts that `more` mounts. */
  write(): void;
}

/** An agent that the sandbox is for. */
interface Chosen {
  readonly agent: Agent;
  /** The command is this agent, or the user named it. */
  readonly named: boolean;
}

export function agentsInside(context: HostContext, wish: AgentsWish): AgentsInside {
  const chosen = choose(wish);
  const applied = new Map<Agent, FoundSignIn>();
  return {
    async adjust(config) {
      let current = config;
      for (const { agent } of chosen) {
        const found = await findSignIn(context, agent, endpointFor(agent, config));
        if (found === null || isHandedOver(config, agent) || lacksModel(config, agent)) continue;
        current = withAgent(current, agent, byEndpoint(agent, found).secret);
        applied.set(agent, found);
      }
      return current;
    },
    signedIn: (plan) => chosen.filter(({ agent }) => isOpen(plan, applied.get(agent))).map(({ agent }) => agent.name),
    async offer(plan, runDir) {
      const offered: Offered[] = [];
      for (const agent of AGENTS) {
        const named = chosen.some((one) => one.agent === agent && one.named);
        const found = applied.get(agent);
        const open = isOpen(plan, found);
        // A key that cannot be read would be found out by the program, after many requests.
        if (named && open && found !== undefined) await checkSecret(context, plan.config.network, found.secret);
        const program = await visibleProgram(context, agent, plan, open || named);
        if (program === null) continue;
        const note = open || isHandedOver(plan.config, agent) ? null : await whyNot(context, plan, agent);
        if (!open && !named) offered.push(plain(agent, program, note));
        else offered.push(prepared(context, plan, agent, program, open ? found : undefined, note));
      }
      return toOffer(offered, runDir);
    },
  };
}

interface Offered extends Pick<MoreInside, 'mounts' | 'files'> {
  readonly launcher: Launcher;
}

/** For the task of an agent: the programs alone. Its own agent finds its sign-in in the environment. */
export async function offerPrograms(
  context: HostContext,
  plan: RunPlan,
  runDir: string,
  own: { readonly agent: Agent; readonly argv: readonly string[] },
): Promise<OfferedAgents> {
  const offered: Offered[] = [];
  for (const agent of AGENTS) {
    if (agent.name === own.agent.name) {
      if (own.argv.length > 0) offered.push(plain(agent, { argv: own.argv, mounts: [] }, null));
      continue;
    }
    const program = await visibleProgram(context, agent, plan, false);
    const note = `${agent.title} is not signed in here: the task of an agent signs in that agent alone.`;
    if (program !== null) offered.push(plain(agent, program, note));
  }
  return toOffer(offered, runDir);
}

function choose(wish: AgentsWish): Chosen[] {
  const { command, named } = wish;
  if (named.includes('none')) {
    if (named.length > 1) throw new AgsError('usage.invalid', '"none" and the name of an agent exclude each other.');
    return [];
  }
  const names = new Set([...(isAgent(wish) ? command.slice(0, 1) : []), ...named]);
  for (const name of names)
    if (!PROGRAM_NAMES.includes(name))
      throw new AgsError('agent.unknown', `No agent "${visible(name)}" can be signed in.`, {
        hint: `Agents: ${PROGRAM_NAMES.join(', ')}. To sign in none: --agent none`,
      });
  const every = names.size === 0 && isPlainShell(wish);
  return AGENTS.filter(({ install, name }) => install !== null && (every || names.has(name))).map((agent) => ({
    agent,
    named: names.has(agent.name),
  }));
}

/** The program, if it is to be in this sandbox: one that ags installed, or any that the sandbox is for. */
async function visibleProgram(
  context: HostContext,
  agent: Agent,
  plan: RunPlan,
  wanted: boolean,
): ReturnType<typeof findProgram> {
  // A remote engine would copy hundreds of megabytes.
  if (agent.install === null || (!wanted && plan.host.engine?.far != null)) return null;
  const program = await findProgram(context, agent, plan, { ask: false });
  return program === null || wanted || program.source === 'installed' ? program : null;
}

/** Several agents share names of variables, so each finds its endpoint by its launcher instead of a variable of the sandbox. */
function byEndpoint(agent: Agent, { signIn, secret }: FoundSignIn): FoundSignIn {
  if (secret.endpoint === null) return { signIn, secret };
  const endpoint = `AGS_ENDPOINT_${agent.name.toUpperCase()}`;
  return { signIn, secret: { ...secret, env: null, endpoint, late: true } };
}

function variablesOf(by: FoundSignIn, found: FoundSignIn | undefined, plan: RunPlan): Record<string, string> {
  const { env = null, endpoint = null } = found?.secret ?? {};
  const url = endpointOf(by);
  const placeholder = plan.network.secrets.placeholders.get(by.secret.name) ?? '';
  return {
    ...(env === null ? {} : { [env]: placeholder }),
    ...(endpoint === null || url === null ? {} : { [endpoint]: url }),
  };
}

function isOpen(plan: RunPlan, found: FoundSignIn | undefined): boolean {
  return found !== undefined && plan.network.secrets.placeholders.has(found.secret.name);
}

/** The user passes a key inside, or has configured a secret for it. */
function isHandedOver({ envPass, envSet, secrets }: EffectiveConfig, { signIns }: Agent): boolean {
  const variables = signIns.flatMap(({ found, secret }) => [...found, secret.env, secret.endpoint]);
  const theirs = secrets.filter(({ late }) => late !== true).flatMap(({ env, endpoint }) => [env, endpoint]);
  return variables.some(
    (name) => name !== null && (envPass.includes(name) || Object.hasOwn(envSet, name) || theirs.includes(name)),
  );
}

/** An endpoint of the user's own does not say which models it has. */
function lacksModel({ agents }: EffectiveConfig, { own, name }: Agent): boolean {
  return own?.needsModel === true && agents[name]?.endpoint != null && agents[name]?.model == null;
}

async function whyNot(context: HostContext, plan: RunPlan, agent: Agent): Promise<string> {
  const { title, name } = agent;
  if (plan.network.spec.kind !== 'gateway' || plan.config.network.mode === 'off')
    return `${title} reaches no model: this sandbox has no network.`;
  if (lacksModel(plan.config, agent))
    return `${title} must be told which model to use: agents: { ${name}: { model: ... } } in the configuration.`;
  if ((await findSignIn(context, agent, endpointFor(agent, plan.config))) === null)
    return `${title} is not signed in. Sign in once: ags auth ${name}`;
  return `${title} is not signed in in this sandbox. To sign it in: ags exec --agent ${name} -- <command>`;
}

function plain(
  { name, title }: Agent,
  { argv, mounts }: Pick<AgentProgram, 'argv' | 'mounts'>,
  note: string | null,
): Offered {
  return { launcher: { name, title, argv, env: {}, homeFiles: [], note }, mounts, files: [] };
}

/** With its settings, as in a task. */
function prepared(
  context: HostContext,
  plan: RunPlan,
  agent: Agent,
  program: AgentProgram,
  found: FoundSignIn | undefined,
  note: string | null,
): Offered {
  const by = found === undefined ? null : byEndpoint(agent, found);
  const { argv, env, files, homeFiles } = agent.plan({
    program: program.argv,
    mode: 'command',
    prompt: '',
    home: context.home,
    project: plan.project.root,
    task: '',
    session: null,
    newSession: '',
    model: plan.config.agents[agent.name]?.model ?? null,
    signIn: by?.signIn ?? null,
    endpoint: endpointOf(by),
    ownEndpoint: by?.secret.own !== undefined,
    settings: readSettings(context.home, agent, plan.config),
    hooks: null,
  });
  const variables = by === null ? {} : variablesOf(by, found, plan);
  const { name, title } = agent;
  return {
    launcher: { name, title, argv, env: { ...variables, ...env }, homeFiles, note },
    mounts: program.mounts,
    files,
  };
}

function toOffer(offered: readonly Offered[], runDir: string): OfferedAgents {
  if (offered.length === 0) return { more: NOTHING_MORE, write: () => undefined };
  const scripts = { from: launchersDir(runDir), to: LAUNCHERS_INSIDE };
  return {
    more: {
      mounts: [...offered.flatMap(({ mounts }) => mounts), scripts],
      files: offered.flatMap(({ files }) => files),
      env: {},
      path: [LAUNCHERS_INSIDE],
    },
    write: () =>
      writeLaunchers(
        runDir,
        offered.map(({ launcher }) => launcher),
      ),
  };
}
