// agent-setup/credentials.ts: how an agent is signed in. `ags auth` sets up a credential once, and all tasks share it.
// Invariant: functions here return where a value is stored, never the value. The gateway reads it, outside, when a sandbox first
// needs it; the sandbox has a placeholder.
import type { Agent, SignIn } from '../agents/agent.ts';
import { AgsError } from '../protocol/errors.ts';
import type { ModelEndpoint, SecretRule } from '../protocol/network.ts';
import {
  credentialFiles,
  keychainEntry,
  readCredential,
  readTokens,
  removeCredential,
  writeCredential,
  type Credential,
  type Tokens,
} from '../store/credentials.ts';
import type { HostContext } from '../run/host-context.ts';
import { credentialHost, credentialName, ownSignIn } from './own-endpoint.ts';

export interface FoundSignIn {
  readonly signIn: SignIn;
  readonly secret: SecretRule;
}

/**
 * Prefers the credential of `ags auth` to a variable of the user's environment. null: not signed in, or no account is needed. An
 * endpoint of the user's own may need no key.
 */
export async function findSignIn(
  context: HostContext,
  agent: Agent,
  endpoint: ModelEndpoint | null,
): Promise<FoundSignIn | null> {
  if (endpoint !== null) return findOwn(context, agent, endpoint);
  const stored = readCredential(context.stateDir, agent.name);
  const signIn = stored === null ? undefined : agent.signIns.find((one) => isFor(stored, one));
  if (stored !== null && signIn !== undefined)
    return { signIn, secret: ruleFor(agent, signIn, sourceOf(context, signIn, stored)) };
  for (const one of agent.signIns)
    for (const env of one.found) if (isSet(context, env)) return { signIn: one, secret: ruleFor(agent, one, { env }) };
  return null;
}

function findOwn(context: HostContext, agent: Agent, endpoint: ModelEndpoint): FoundSignIn {
  const signIn = ownSignIn(agent, endpoint);
  const stored = readCredential(context.stateDir, credentialName(agent, true));
  const fits = stored?.host === credentialHost(signIn);
  const from = endpoint.key ?? (stored !== null && fits ? sourceOf(context, signIn, stored) : null);
  return { signIn, secret: { ...signIn.secret, name: secretName(agent.name), from, origin: endpoint.origin } };
}

/** A credential without a host was stored when there was only one sign-in of its kind. */
function isFor({ kind, host }: Credential, signIn: SignIn): boolean {
  return kind === signIn.kind && (host === '' || host === signIn.secret.host);
}

export function secretName(agent: string): string {
  return `agent-${agent}`;
}

function ruleFor(agent: Agent, { secret }: SignIn, from: SecretRule['from']): SecretRule {
  return { ...secret, name: secretName(agent.name), from, origin: 'ags auth' };
}

function sourceOf(context: HostContext, signIn: SignIn, stored: Credential): SecretRule['from'] {
  const files = credentialFiles(context.stateDir, stored.agent);
  if (stored.kept === 'keychain') return { keychain: keychainEntry(stored.agent) };
  if (stored.kind !== 'login') return { file: files.value };
  return { login: files.tokens, agent: stored.agent, refresh: signIn.login?.refresh ?? null };
}

function isSet(context: HostContext, name: string): boolean {
  return (context.env[name] ?? '').trim() !== '';
}

export function signInNeeded(agent: Pick<Agent, 'name' | 'title'>): AgsError {
  return new AgsError('auth.needed', `${agent.title} is not signed in.`, {
    hint: `Sign in once: ags auth ${agent.name}`,
  });
}

/** Variables of the user's environment that hold a value for this sign-in. */
export function foundInEnvironment(context: HostContext, signIn: SignIn): string[] {
  return signIn.found.filter((name) => isSet(context, name));
}

/** Returns the key without surrounding blanks and line breaks. Throws if the text cannot be a key. */
export function checkKey(written: string): string {
  const key = written.replace(/^[ \t]+|[ \t\r\n]+$/g, '');
  const problem =
    key === ''
      ? 'It is empty.'
      : key.length > 8192
        ? 'It is longer than any key.'
        : /\s/.test(key)
          ? 'There is a space or a line break in it: a key is one word.'
          : /^[\x21-\x7e]+$/.test(key)
            ? key.length < 8
              ? 'It is too short for a key.'
              : null
            : 'It contains a character that no key contains.';
  if (problem === null) return key;
  throw new AgsError('auth.invalid', `That is not a key. ${problem}`, { hint: 'Copy it whole, and nothing else.' });
}

export function keepKey(context: HostContext, agent: Agent, signIn: SignIn, key: string): Credential {
  const credential = describe(context, agent, signIn, key, 'file');
  writeCredential(context.stateDir, credential, key);
  return credential;
}

export function keepTokens(context: HostContext, agent: Agent, signIn: SignIn, tokens: Tokens): Credential {
  const credential = describe(context, agent, signIn, tokens.access, 'file');
  writeCredential(context.stateDir, credential, tokens);
  return credential;
}

export async function keepInKeychain(
  context: HostContext,
  agent: Agent,
  signIn: SignIn,
  key: string,
): Promise<Credential> {
  const { storeInKeychain } = await import('./keychain.ts');
  const entry = keychainEntry(credentialName(agent, signIn.secret.own !== undefined));
  await storeInKeychain(context, entry, `ags: ${agent.title}`, key);
  const credential = describe(context, agent, signIn, key, 'keychain');
  writeCredential(context.stateDir, credential, null);
  return credential;
}

function describe(
  context: HostContext,
  agent: Agent,
  signIn: SignIn,
  value: string,
  kept: Credential['kept'],
): Credential {
  return {
    agent: credentialName(agent, signIn.secret.own !== undefined),
    kind: signIn.kind,
    kept,
    ending: value.slice(-4),
    since: context.now().toISOString(),
    host: credentialHost(signIn),
  };
}

/** Returns false if there was no credential. */
export async function forget(context: HostContext, agent: string): Promise<boolean> {
  const stored = readCredential(context.stateDir, agent);
  if (stored === null) return false;
  if (stored.kept === 'keychain') {
    const { clearFromKeychain } = await import('./keychain.ts');
    await clearFromKeychain(context, keychainEntry(agent));
  }
  removeCredential(context.stateDir, agent);
  return true;
}

export interface SignInStatus {
  readonly agent: string;
  /** The host of the provider, or the URL of an endpoint of the user's own; null: none. */
  readonly provider: string | null;
  readonly kind: SignIn['kind'] | null;
  /** The last four characters; null: the value is not stored by ags. */
  readonly ending: string | null;
  /** configuration: a file, a command or a keychain entry that it names. */
  readonly where: 'file' | 'keychain' | 'environment' | 'configuration' | 'none' | 'not needed';
  /** The name of the variable, if `where` is `environment`. */
  readonly variable: string | null;
  readonly since: string | null;
  /** When a log-in's current token expires; the gateway renews it if `renewed`. */
  readonly expires: string | null;
  readonly renewed: boolean;
  /** A phrase for the user; null: the sign-in works. */
  readonly problem: string | null;
}

export async function signInStatus(
  context: HostContext,
  agent: Agent,
  endpoint: ModelEndpoint | null,
): Promise<SignInStatus> {
  const nothing = {
    provider: endpoint?.url ?? null,
    kind: null,
    ending: null,
    variable: null,
    since: null,
    expires: null,
    renewed: false,
    problem: null,
  };
  if (agent.signIns.length === 0 && endpoint === null) return { agent: agent.name, ...nothing, where: 'not needed' };
  const found = await findSignIn(context, agent, endpoint);
  if (found === null) return { agent: agent.name, ...nothing, where: 'none' };
  const { from } = found.secret;
  const known = { ...nothing, provider: endpoint?.url ?? found.secret.host, kind: found.signIn.kind };
  if (from === null) return { agent: agent.name, ...known, kind: null, where: 'not needed' };
  if ('env' in from) {
    const here = { agent: agent.name, ...known, where: 'environment', variable: from.env } as const;
    return isSet(context, from.env) ? here : { ...here, kind: null, problem: `${from.env} is not set` };
  }
  if (endpoint?.key != null) return { agent: agent.name, ...known, where: 'configuration' };
  const stored = readCredential(context.stateDir, credentialName(agent, endpoint !== null));
  const tokens = 'login' in from ? readTokens(from.login, agent.name) : null;
  const over = tokens !== null && tokens.expiresAtMs !== null && tokens.expiresAtMs <= context.now().getTime();
  const renewable = 'login' in from && from.refresh !== null && tokens?.refresh != null && tokens.refused !== true;
  return {
    agent: agent.name,
    ...known,
    ending: stored?.ending ?? null,
    where: 'keychain' in from ? 'keychain' : 'file',
    since: stored?.since ?? null,
    expires: tokens?.expiresAtMs == null ? null : new Date(tokens.expiresAtMs).toISOString(),
    renewed: renewable,
    problem:
      'login' in from && tokens === null
        ? 'its tokens are missing; sign in again'
        : over && !renewable
          ? 'expired; sign in again'
          : null,
  };
}
