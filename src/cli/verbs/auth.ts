// cli/verbs/auth.ts: `ags auth`: signs an agent in once, for all tasks.
// Invariant: a key is never an argument, and ags shows only the last four characters of a key.
import { AGENTS } from '../../agents/agents.ts';
import type { Agent, SignIn } from '../../agents/agent.ts';
import { AgsError, EXIT } from '../../protocol/errors.ts';
import { visible } from '../../lib/sanitize.ts';
import {
  checkKey,
  findSignIn,
  forget,
  foundInEnvironment,
  keepInKeychain,
  keepKey,
  keepTokens,
  signInStatus,
} from '../../agent-setup/credentials.ts';
import { credentialName, endpointFor, unfollowedUrl, waysFor } from '../../agent-setup/own-endpoint.ts';
import { tryKey, type Tried } from '../../agent-setup/try-key.ts';
import type { EffectiveConfig } from '../../config/effective.ts';
import { formatSource } from '../../config/network/asks.ts';
import type { ModelEndpoint } from '../../protocol/network.ts';
import { userConfig } from '../../run/one-off-sandbox.ts';
import type { Credential } from '../../store/credentials.ts';
import { agentNamed } from '../agent-name.ts';
import { table } from '../terminal/format.ts';
import { readPiped, readSecret } from '../terminal/read-secret.ts';
import { signInWords } from '../terminal/sign-in-words.ts';
import type { Arguments, Context, Verb } from '../verb.ts';

const verb: Verb = {
  summary: 'sign an agent in, once for all tasks',
  usage: `auth {${[...AGENTS.filter(({ signIns }) => signIns.length > 0).map(({ name }) => name), 'status', 'remove'].join('|')}} [agent] [options]`,
  takes: 'any',
  about:
    "Keys stay outside: a sandbox has a placeholder, and the gateway puts the key into requests to its one host. ags asks for the key without showing it; a key is never an argument. With --login, the agent's own log-in runs in a sandbox and ags keeps only its tokens, which it renews outside for all tasks. If your configuration gives the agent a model endpoint of your own (agents.<name>.url), the key is for that endpoint. ags tries each key with a request that costs nothing, and says what came back; so does status.",
  examples: [
    'ags auth claude',
    'ags auth codex --login',
    'pass show openai | ags auth codex --key-stdin',
    'ags auth gemini --from-env GEMINI_API_KEY',
    'ags auth status',
    'ags auth remove codex',
  ],
  options: {
    'key-stdin': { type: 'boolean', about: 'read the key or token from standard input' },
    'from-env': { type: 'string', value: 'NAME', about: 'store the current value of this variable' },
    login: { type: 'boolean', about: "use the agent's own log-in, in a sandbox" },
    host: { type: 'string', value: 'host', about: 'the provider of the key, for an agent that supports several' },
    token: { type: 'boolean', about: 'the value is a subscription token, not an API key' },
    keychain: { type: 'boolean', about: 'store it in the keychain of your session instead of a file' },
    json: { type: 'boolean', about: 'print one JSON document' },
  },
  async run(args, ctx) {
    const [word, ...rest] = args.positionals;
    if (word === 'status') return status(rest, args, ctx);
    if (word === 'remove') return remove(rest, args, ctx);
    if (word === undefined)
      throw new AgsError('usage.invalid', 'Which agent?', {
        hint: `For example: ags auth ${AGENTS.find((agent) => agent.signIns.length > 0)?.name ?? 'status'}`,
      });
    if (rest.length > 0)
      throw new AgsError(
        'usage.invalid',
        'A key cannot be an argument: other users can see program arguments, and your shell stores them.',
        {
          hint: `Type it when asked: ags auth ${visible(word)}. In a script: ... | ags auth ${visible(word)} --key-stdin`,
        },
      );
    return signInTo(agentNamed(word), args, ctx);
  },
};
export default verb;

/** An agent, and where it is to be signed in. */
interface At {
  readonly agent: Agent;
  /** null: at its usual provider. */
  readonly endpoint: ModelEndpoint | null;
  readonly ways: readonly SignIn[];
  readonly config: EffectiveConfig;
}

async function signInTo(agent: Agent, args: Arguments, ctx: Context): Promise<number> {
  const { values } = args;
  const config = await userConfig(ctx.host, ctx.host.stateDir);
  const endpoint = endpointFor(agent, config);
  const at: At = { agent, endpoint, ways: waysFor(agent, endpoint), config };
  if (endpoint?.key != null)
    throw new AgsError(
      'usage.invalid',
      `${endpoint.origin} says where the key of ${endpoint.url} is: ${formatSource(endpoint.key)}.`,
      {
        hint: `To try it: ags auth status ${agent.name}. To store a key here instead, remove "key" there.`,
      },
    );
  if (at.ways.length === 0) {
    ctx.stderr.write(`${agent.title} needs no account.\n`);
    return EXIT.done;
  }
  const ways = ['key-stdin', 'from-env', 'login'].filter((name) => values[name] !== undefined);
  if (ways.length > 1) throw new AgsError('usage.invalid', `--${ways[0]} and --${ways[1]} exclude each other.`);
  if (values['login'] === true) return logIn(at, args, ctx);
  const variable = values['from-env'];
  if (typeof variable === 'string') return copyVariable(at, variable, args, ctx);
  if (values['key-stdin'] === true) return keep(at, wayFor(at, args), await readPiped(ctx), args, ctx);
  if (!ctx.terminal.stdin || !ctx.terminal.stderr)
    throw new AgsError('usage.no-terminal', 'ags cannot ask for the key: there is no terminal.', {
      hint: `In a script: ... | ags auth ${agent.name} --key-stdin, or --from-env NAME`,
    });
  return interactive(at, args, ctx);
}

/** The sign-in that the flags select. */
function wayFor({ agent, ways }: At, { values }: Arguments, variable?: string): SignIn {
  const host = values['host'];
  const kinds = ways.filter(({ kind, secret }) => kind !== 'login' && (host === undefined || secret.host === host));
  const named = variable === undefined ? undefined : kinds.find(({ found }) => found.includes(variable));
  const way =
    values['token'] === true
      ? kinds.find(({ kind }) => kind === 'token')
      : (named ?? kinds.find(({ kind }) => kind === 'api-key') ?? kinds[0]);
  if (way !== undefined) return way;
  throw new AgsError('usage.invalid', `${agent.title} cannot be signed in that way.`, {
    hint: `Ways:\n${ways.map(({ title, secret }) => `  ${title} (${secret.host})`).join('\n')}`,
  });
}

async function copyVariable(at: At, variable: string, args: Arguments, ctx: Context): Promise<number> {
  const value = ctx.env[variable];
  if (value === undefined || value === '')
    throw new AgsError('auth.invalid', `The variable ${visible(variable)} is not set.`, {
      hint: `Set it first: export ${visible(variable)}=...`,
    });
  return keep(at, wayFor(at, args, variable), value, args, ctx);
}

async function interactive(at: At, args: Arguments, ctx: Context): Promise<number> {
  const way = args.values['token'] === true ? wayFor(at, args) : await chooseWay(at, ctx);
  if (way === null) return EXIT.cancelled;
  if (way.kind === 'login') return logIn(at, args, ctx);
  ctx.stderr.write(`${way.title}. ${way.how}\n`);
  for (const variable of foundInEnvironment(ctx.host, way)) {
    const answer = await ctx.ask(
      `${variable} is set in your environment and is used while it is set. Store a copy for later? [y/N] `,
    );
    if (/^y(es)?$/i.test(answer)) return copyVariable(at, variable, args, ctx);
  }
  const typed = await readSecret(`${way.kind === 'token' ? 'Token' : 'Key'} (it is not shown): `, ctx);
  return keep(at, way, typed, args, ctx);
}

async function chooseWay({ agent, ways }: At, ctx: Context): Promise<SignIn | null> {
  const [only, ...others] = ways;
  if (only !== undefined && others.length === 0) return only;
  ctx.stderr.write(`How do you want to sign in to ${agent.title}?\n`);
  for (const [i, { title }] of ways.entries()) ctx.stderr.write(`  ${i + 1}  ${title}\n`);
  const answer = await ctx.ask('Number [1]: ');
  if (answer === '') return only ?? null;
  const chosen = /^\d+$/.test(answer) ? ways[Number(answer) - 1] : undefined;
  if (chosen !== undefined) return chosen;
  throw new AgsError('usage.invalid', `There is no "${visible(answer)}" in the list.`);
}

async function keep(at: At, way: SignIn, written: string, args: Arguments, ctx: Context): Promise<number> {
  const key = checkKey(written);
  const kept =
    args.values['keychain'] === true
      ? await keepInKeychain(ctx.host, at.agent, way, key)
      : keepKey(ctx.host, at.agent, way, key);
  return told(at, kept, args, ctx);
}

async function logIn(at: At, args: Arguments, ctx: Context): Promise<number> {
  const { agent, endpoint } = at;
  const way = at.ways.find(({ login }) => login !== undefined);
  if (way === undefined)
    throw new AgsError('usage.invalid', `ags does not support a log-in for ${endpoint?.url ?? agent.title}.`, {
      hint: `With a key: ags auth ${agent.name}`,
    });
  if (args.values['keychain'] === true || args.values['token'] === true)
    throw new AgsError('usage.invalid', 'ags renews the tokens of a log-in, so it stores them in its own file.', {
      hint: `Use: ags auth ${agent.name} --login`,
    });
  if (!ctx.terminal.stdin || !ctx.terminal.stdout)
    throw new AgsError('usage.no-terminal', "The agent's own log-in needs a terminal.");
  const { runLogIn } = await import('../../agent-setup/log-in.ts');
  const { openTerminal } = await import('../../exec/terminal.ts');
  ctx.stderr.write(`${way.how}\nStarting the log-in of ${agent.title} in its own sandbox.\n`);
  const tokens = await runLogIn(ctx.host, agent, way, {
    openStdio: () => openTerminal(ctx),
    notice: (text) => void ctx.stderr.write(`ags: ${text}\n`),
  });
  return told(at, keepTokens(ctx.host, agent, way, tokens), args, ctx);
}

/** The key is stored, and then tried: what is unreachable now may be reachable later. */
async function told(
  at: At,
  { kind, kept, ending, since }: Credential,
  { values }: Arguments,
  ctx: Context,
): Promise<number> {
  const { agent, endpoint, config } = at;
  const found = await findSignIn(ctx.host, agent, endpoint);
  const provider = endpoint?.url ?? found?.secret.host ?? '';
  if (values['json'] !== true)
    ctx.stdout.write(
      `${agent.title} is signed in${endpoint === null ? '' : ` at ${endpoint.url}`} (...${ending}, kept in ${kept === 'file' ? 'a file that only you can read' : 'your keychain'}). All tasks use it from now on.\n`,
    );
  const tried = found === null ? null : await tryKey(ctx.host, config, found, modelOf(agent, config));
  if (values['json'] === true)
    ctx.stdout.write(
      `${JSON.stringify({ agent: agent.name, provider, kind, where: kept, ending, since, tried }, null, 2)}\n`,
    );
  else if (tried !== null) {
    const again = tried.status === 401 ? ` It is stored all the same; to replace it: ags auth ${agent.name}` : '';
    ctx.stderr.write(`Tried at ${provider}: ${tried.words}${again}\n`);
  }
  return EXIT.done;
}

function modelOf(agent: Agent, { agents }: EffectiveConfig): string | null {
  return agents[agent.name]?.model ?? null;
}

async function status(names: readonly string[], { values }: Arguments, ctx: Context): Promise<number> {
  const config = await userConfig(ctx.host, ctx.host.stateDir);
  const agents =
    names.length === 0
      ? AGENTS.filter((agent) => agent.signIns.length > 0 || endpointFor(agent, config) !== null)
      : names.map(agentNamed);
  const all = await Promise.all(
    agents.map(async (agent) => {
      const endpoint = endpointFor(agent, config);
      const found = await findSignIn(ctx.host, agent, endpoint);
      const tried =
        found === null
          ? null
          : await tryKey(ctx.host, config, found, modelOf(agent, config)).catch((error: unknown) => unreadable(error));
      return { ...(await signInStatus(ctx.host, agent, endpoint)), tried };
    }),
  );
  if (values['json'] === true) {
    ctx.stdout.write(`${JSON.stringify({ agents: all }, null, 2)}\n`);
    return EXIT.done;
  }
  ctx.stdout.write(
    table([
      ['AGENT', 'PROVIDER', 'SIGNED IN', 'KEPT IN', 'SINCE', 'EXPIRES'],
      ...all.map((one) => [
        one.agent,
        one.provider ?? '-',
        signInWords(one),
        one.where === 'none' || one.where === 'not needed' ? '-' : one.where,
        one.since?.slice(0, 10) ?? '-',
        one.renewed ? 'renewed automatically' : (one.expires?.slice(0, 16).replace('T', ' ') ?? '-'),
      ]),
    ]),
  );
  for (const agent of agents) {
    const unfollowed = unfollowedUrl(agent, endpointFor(agent, config), ctx.host.env);
    if (unfollowed !== null) ctx.stderr.write(`ags: ${unfollowed}\n`);
  }
  for (const { agent, provider, tried } of all)
    if (tried !== null) ctx.stdout.write(`${agent} at ${provider}: ${tried.words}\n`);
  return EXIT.done;
}

/** The place that should hold the key does not. */
function unreadable(error: unknown): Tried {
  if (!(error instanceof AgsError)) throw error;
  return { works: false, status: null, words: `Not tried. ${error.message}` };
}

async function remove(names: readonly string[], { values }: Arguments, ctx: Context): Promise<number> {
  const [name] = names;
  if (name === undefined || names.length > 1)
    throw new AgsError('usage.invalid', 'Which agent?', { hint: 'See: ags auth status' });
  const agent = agentNamed(name);
  const endpoint = endpointFor(agent, await userConfig(ctx.host, ctx.host.stateDir));
  const had = await forget(ctx.host, credentialName(agent, endpoint !== null));
  if (values['json'] === true) ctx.stdout.write(`${JSON.stringify({ agent: agent.name, removed: had }, null, 2)}\n`);
  else
    ctx.stdout.write(
      had
        ? `The sign-in of ${agent.title}${endpoint === null ? '' : ` at ${endpoint.url}`} was removed. To revoke the key itself, use the provider's website.\n`
        : `${agent.title} was not signed in${endpoint === null ? '' : ` at ${endpoint.url}`}.\n`,
    );
  return EXIT.done;
}
