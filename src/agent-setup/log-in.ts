// agent-setup/log-in.ts: runs an agent's own log-in in a sandbox with a terminal, a temporary home and only the log-in's hosts.
// Invariant: ags reads exactly one file that it leaves, by descriptor, as hostile text, keeps only the tokens in it, and destroys
// the home. A failed log-in changes nothing.
import type { Agent, SignIn } from '../agents/agent.ts';
import { AgsError } from '../protocol/errors.ts';
import type { NetworkRule } from '../protocol/network.ts';
import { parseRule } from '../protocol/network-rule.ts';
import { openDirectory, type Directory } from '../lib/descend.ts';
import { errorCode } from '../lib/error-code.ts';
import type { Tokens } from '../store/credentials.ts';
import { findProgram, userView } from './programs.ts';
import { runOneOff, type OneOffRequest } from '../run/one-off-sandbox.ts';
import { isToken } from '../run/network/token-refresh.ts';
import type { HostContext } from '../run/host-context.ts';

type Login = NonNullable<SignIn['login']>;

export async function runLogIn(
  context: HostContext,
  agent: Agent,
  signIn: SignIn,
  io: Required<Pick<OneOffRequest, 'openStdio' | 'notice'>>,
): Promise<Tokens> {
  const { login } = signIn;
  if (login === undefined) throw new Error(`${agent.name} has no log-in`);
  const program = await findProgram(context, agent, await userView(context), { ask: false });
  if (program === null)
    throw new AgsError('agent.missing', `${agent.title} is not installed.`, {
      hint: `Install it: ags agents install ${agent.name}`,
    });
  const request: OneOffRequest = {
    ...io,
    name: `login-${agent.name}`,
    command: [...program.argv, ...login.argv],
    network: { rules: login.hosts.map(ruleOf) },
    mounts: program.mounts,
    // There is no browser inside: the agent prints the address, and the user opens it.
    env: { NO_BROWSER: 'true' },
  };
  return runOneOff(context, context.stateDir, request, ({ exitCode, home, denied }) => {
    const text = readLeft(home, login.file);
    if (text === null)
      throw failed(
        agent,
        `the agent stored no sign-in (exit code ${exitCode}${denied.length === 0 ? '' : `; refused: ${denied.map(({ host }) => host).join(', ')}`})`,
      );
    return readTokens(agent, login, text);
  });
}

function ruleOf(text: string): NetworkRule {
  const rule = parseRule(text);
  if ('problem' in rule) throw new Error(`${text}: ${rule.problem}`);
  return { action: 'allow', ...rule, origin: 'ags auth' };
}

const MOST_BYTES = 64 * 1024;

/** null: the file does not exist. */
function readLeft(home: string, path: string): string | null {
  const names = path.split('/');
  const last = names.pop() ?? '';
  const open: Directory[] = [openDirectory(home)];
  try {
    for (const name of names) open.push((open.at(-1) as Directory).child(name));
    const bytes = (open.at(-1) as Directory).readFile(last, MOST_BYTES);
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return null;
    return '';
  } finally {
    for (const directory of open.toReversed()) directory[Symbol.dispose]();
  }
}

function readTokens(agent: Agent, login: Login, text: string): Tokens {
  let read: ReturnType<Login['read']>;
  try {
    read = login.read(text);
  } catch {
    // The original message could contain tokens.
    throw failed(agent, 'its stored sign-in has an unknown format');
  }
  const { access, refresh, expiresAtMs } = read;
  const expires = expiresAtMs === null || (Number.isFinite(expiresAtMs) && expiresAtMs > 0);
  if (!isToken(access) || (refresh !== null && !isToken(refresh)) || !expires)
    throw failed(agent, 'its stored sign-in has an unknown format');
  return { access, refresh, expiresAtMs };
}

function failed(agent: Agent, why: string): AgsError {
  return new AgsError('auth.needed', `The log-in of ${agent.title} failed: ${why}.`, {
    hint: `Try again: ags auth ${agent.name} --login`,
  });
}
