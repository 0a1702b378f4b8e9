// store/credentials.ts: the user's credentials for agents, one per agent, shared by all tasks.
// <stateDir>/credentials (0700) holds <agent>.json, which describes it, and <agent>.value with only the key, or
// <agent>.tokens with the tokens of a log-in (0600 each). For a model endpoint of the user's own, <agent> is <agent>-own.
// Invariant: each file is replaced whole, and is on the disk before success is reported. A file that <agent>.json does not name is ignored.
import { existsSync, mkdirSync, openSync, fsyncSync, closeSync, readFileSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { AgsError } from '../protocol/errors.ts';
import { replaceFile } from '../lib/files.ts';

export type CredentialKind = 'api-key' | 'token' | 'login';

/** Not secret, except perhaps the last four characters. */
export interface Credential {
  readonly agent: string;
  readonly kind: CredentialKind;
  readonly kept: 'file' | 'keychain';
  /** The last characters, by which users recognise a key. */
  readonly ending: string;
  readonly since: string;
  /** The one host it is for; an agent may use keys of several hosts. */
  readonly host: string;
}

/** Tokens of a log-in. */
export interface Tokens {
  readonly access: string;
  readonly refresh: string | null;
  /** null: unknown. */
  readonly expiresAtMs: number | null;
  /** The server has refused to renew them. */
  readonly refused?: boolean;
}

export interface CredentialFiles {
  readonly about: string;
  readonly value: string;
  readonly tokens: string;
}

export function credentialsDir(stateDir: string): string {
  return join(stateDir, 'credentials');
}

export function credentialFiles(stateDir: string, agent: string): CredentialFiles {
  const at = (end: string): string => join(credentialsDir(stateDir), `${agent}.${end}`);
  return { about: at('json'), value: at('value'), tokens: at('tokens') };
}

/** The entry in the keychain of the user's session. */
export function keychainEntry(agent: string): string {
  return `ags/${agent}`;
}

/** null: no credential. */
export function readCredential(stateDir: string, agent: string): Credential | null {
  const { about } = credentialFiles(stateDir, agent);
  if (!existsSync(about)) return null;
  const read = JSON.parse(readText(about)) as Partial<Credential>;
  const { kind, kept, ending, since, host } = read;
  if (!['api-key', 'token', 'login'].includes(kind ?? '') || !['file', 'keychain'].includes(kept ?? ''))
    throw damaged(about, agent);
  return {
    agent,
    kind: kind as CredentialKind,
    kept: kept as 'file' | 'keychain',
    ending: String(ending ?? ''),
    since: String(since ?? ''),
    host: String(host ?? ''),
  };
}

/** `secret`: the key, or the tokens; null: it is in the keychain. */
export function writeCredential(stateDir: string, credential: Credential, secret: string | Tokens | null): void {
  const dir = credentialsDir(stateDir);
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  const files = credentialFiles(stateDir, credential.agent);
  if (typeof secret === 'string') replaceFile(files.value, secret, { durable: true });
  if (secret !== null && typeof secret !== 'string') writeTokens(files.tokens, secret);
  replaceFile(files.about, `${JSON.stringify(credential)}\n`, { durable: true });
  // Removes parts of the earlier credential that this one does not have.
  if (typeof secret !== 'string') rmSync(files.value, { force: true });
  if (secret === null || typeof secret === 'string') rmSync(files.tokens, { force: true });
  syncDirectory(dir);
}

export function removeCredential(stateDir: string, agent: string): void {
  const files = credentialFiles(stateDir, agent);
  for (const path of [files.about, files.value, files.tokens]) rmSync(path, { force: true });
  if (existsSync(credentialsDir(stateDir))) syncDirectory(credentialsDir(stateDir));
}

export function writeTokens(path: string, tokens: Tokens): void {
  replaceFile(path, `${JSON.stringify(tokens)}\n`, { durable: true });
}

/** null: they were removed. */
export function readTokens(path: string, agent: string): Tokens | null {
  if (!existsSync(path)) return null;
  const { access, refresh, expiresAtMs, refused } = JSON.parse(readText(path)) as Partial<Record<string, unknown>>;
  if (typeof access !== 'string') throw damaged(path, agent);
  return {
    access,
    refresh: typeof refresh === 'string' ? refresh : null,
    expiresAtMs: typeof expiresAtMs === 'number' ? expiresAtMs : null,
    ...(refused === true ? { refused } : {}),
  };
}

/** Refuses a file that other users can read or write: they may have read it, or may have put it there. */
function readText(path: string): string {
  const { mode, uid } = statSync(path);
  if ((mode & 0o077) !== 0 || (uid !== process.geteuid?.() && uid !== 0))
    throw new AgsError('state.damaged', `${path} can be read or changed by others.`, {
      hint: `Restrict it to yourself: chmod 600 ${path}`,
    });
  return readFileSync(path, 'utf8');
}

function damaged(path: string, agent: string): AgsError {
  return new AgsError('state.damaged', `${path} cannot be read.`, { hint: `Sign in again: ags auth ${agent}` });
}

// A new file name is durable only after its directory is synced.
function syncDirectory(dir: string): void {
  const fd = openSync(dir, 'r');
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}
