// agent-setup/credentials.ts: how an agent is signed in. A credential is set up once (`ags auth`) and shared by all tasks.
// Invariant: what leaves this file is where a value is kept, never the value. The gateway reads it, outside, when a sandbox first
// needs it, and the sandbox has a placeholder.
import type { Agent, SignIn } from '../agents/agent.ts';
import { AgsError } from '../protocol/errors.ts';
import type { SecretRule } from '../protocol/network.ts';
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
import type { World } from '../run/host-context.ts';

export interface FoundSignIn {
  readonly signIn: SignIn;
  readonly secret: SecretRule;
}

/** What `ags auth` has stored; otherwise a variable of the user's environment. null: not signed in, or no account is needed. */
export async function findSignIn(world: World, agent: Agent): Promise<FoundSignIn | null> {
  const stored = readCredential(world.stateDir, agent.name);
  const signIn = stored === null ? undefined : agent.signIns.find((one) => isFor(stored, one));
  if (stored !== null && signIn !== undefined)
    return { signIn, secret: ruleFor(agent, signIn, sourceOf(world, agent, signIn, stored)) };
  for (const one of agent.signIns)
    for (const env of one.found) if (isSet(world, env)) return { signIn: one, secret: ruleFor(agent, one, { env }) };
  return null;
}

/** A credential without a host was kept when there was one of its kind. */
function isFor({ kind, host }: Credential, signIn: SignIn): boolean {
  return kind === signIn.kind && (host === '' || host === signIn.secret.host);
}

export function secretName(agent: string): string {
  return `agent-${agent}`;
}

function ruleFor(agent: Agent, { secret }: SignIn, from: SecretRule['from']): SecretRule {
  return { ...secret, name: secretName(agent.name), from, origin: 'ags auth' };
}

function sourceOf(world: World, agent: Agent, signIn: SignIn, stored: Credential): SecretRule['from'] {
  const files = credentialFiles(world.stateDir, agent.name);
  if (stored.kept === 'keychain') return { keychain: keychainEntry(agent.name) };
  if (stored.kind !== 'login') return { file: files.value };
  return { login: files.tokens, agent: agent.name, refresh: signIn.login?.refresh ?? null };
}

function isSet(world: World, name: string): boolean {
  return (world.env[name] ?? '').trim() !== '';
}

/** "To sign in" for whoever needs one. */
export function signInNeeded(agent: Pick<Agent, 'name' | 'title'>): AgsError {
  return new AgsError('auth.needed', `${agent.title} is not signed in.`, {
    hint: `Sign in once: ags auth ${agent.name}`,
  });
}

/** Variables of the user's environment that hold a value for this way. */
export function foundInEnvironment(world: World, signIn: SignIn): string[] {
  return signIn.found.filter((name) => isSet(world, name));
}

/** The value itself, without what a copy or a file brings along at its ends. Throws on anything that cannot be one. */
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
            : 'It has a character that no key has.';
  if (problem === null) return key;
  throw new AgsError('auth.invalid', `That is not a key. ${problem}`, { hint: 'Copy it whole, and nothing else.' });
}

export function keepKey(world: World, agent: Agent, signIn: SignIn, key: string): Credential {
  const credential = describe(world, agent, signIn, key, 'file');
  writeCredential(world.stateDir, credential, key);
  return credential;
}

export function keepTokens(world: World, agent: Agent, signIn: SignIn, tokens: Tokens): Credential {
  const credential = describe(world, agent, signIn, tokens.access, 'file');
  writeCredential(world.stateDir, credential, tokens);
  return credential;
}

export async function keepInKeychain(world: World, agent: Agent, signIn: SignIn, key: string): Promise<Credential> {
  const { storeInKeychain } = await import('./keychain.ts');
  await storeInKeychain(world, keychainEntry(agent.name), `ags: ${agent.title}`, key);
  const credential = describe(world, agent, signIn, key, 'keychain');
  writeCredential(world.stateDir, credential, null);
  return credential;
}

function describe(world: World, agent: Agent, signIn: SignIn, value: string, kept: Credential['kept']): Credential {
  return {
    agent: agent.name,
    kind: signIn.kind,
    kept,
    ending: value.slice(-4),
    since: world.now().toISOString(),
    host: signIn.secret.host,
  };
}

/** False: there was none. */
export async function forget(world: World, agent: string): Promise<boolean> {
  const stored = readCredential(world.stateDir, agent);
  if (stored === null) return false;
  if (stored.kept === 'keychain') {
    const { clearFromKeychain } = await import('./keychain.ts');
    await clearFromKeychain(world, keychainEntry(agent));
  }
  removeCredential(world.stateDir, agent);
  return true;
}

export interface SignInStatus {
  readonly agent: string;
  readonly kind: SignIn['kind'] | null;
  /** "…wxyz"; null: not ours to look at. */
  readonly ending: string | null;
  readonly where: 'file' | 'keychain' | 'environment' | 'none' | 'not needed';
  /** The variable, of `environment`. */
  readonly variable: string | null;
  readonly since: string | null;
  /** Of a log-in's present token; it is renewed by itself if `renewed`. */
  readonly expires: string | null;
  readonly renewed: boolean;
  /** In words; null: all is well. */
  readonly problem: string | null;
}

export async function signInStatus(world: World, agent: Agent): Promise<SignInStatus> {
  const nothing = {
    kind: null,
    ending: null,
    variable: null,
    since: null,
    expires: null,
    renewed: false,
    problem: null,
  };
  if (agent.signIns.length === 0) return { agent: agent.name, ...nothing, where: 'not needed' };
  const found = await findSignIn(world, agent);
  if (found === null) return { agent: agent.name, ...nothing, where: 'none' };
  const { from } = found.secret;
  const { kind } = found.signIn;
  if ('env' in from) return { agent: agent.name, ...nothing, kind, where: 'environment', variable: from.env };
  const stored = readCredential(world.stateDir, agent.name);
  const tokens = 'login' in from ? readTokens(from.login, agent.name) : null;
  const over = tokens !== null && tokens.expiresAtMs !== null && tokens.expiresAtMs <= world.now().getTime();
  const renewable = 'login' in from && from.refresh !== null && tokens?.refresh != null && tokens.refused !== true;
  return {
    agent: agent.name,
    ...nothing,
    kind,
    ending: stored?.ending ?? null,
    where: 'keychain' in from ? 'keychain' : 'file',
    since: stored?.since ?? null,
    expires: tokens?.expiresAtMs == null ? null : new Date(tokens.expiresAtMs).toISOString(),
    renewed: renewable,
    problem:
      'login' in from && tokens === null ? 'its tokens are gone' : over && !renewable ? 'expired; sign in again' : null,
  };
}
