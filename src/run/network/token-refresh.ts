// run/network/token-refresh.ts: the current token of a sign-in, renewed shortly before it expires.
// Invariants: one process at a time uses a refresh token, under a lock, and never twice: after waiting for the lock, the
// stored tokens are read again. A new pair is on the disk before it is used. No message contains a token or text of a server.
import { setTimeout as sleep } from 'node:timers/promises';
import { AgsError } from '../../protocol/errors.ts';
import type { LoginSource, TokenRefresh } from '../../protocol/network.ts';
import { tryLock } from '../../lib/process/lock.ts';
import type { Post } from '../../gateway/dial/post.ts';
import { readTokens, writeTokens, type Tokens } from '../../store/credentials.ts';

export interface RefreshDeps {
  readonly post: Post;
  now(): number;
  /** Pause between two tries; for tests. */
  readonly pauseMs?: number;
}

/** A token is renewed this long before its end, so that none expires during a request. */
const EARLY_MS = 5 * 60_000;
const LOCK_WAIT_MS = 120_000;
const TRIES = 3;

export async function currentToken(source: LoginSource, deps: RefreshDeps): Promise<string> {
  const tokens = read(source);
  if (!isDue(tokens, deps.now())) return tokens.access;
  if (!isRenewable(source, tokens)) return ifValid(source, tokens, deps.now());
  return renewUnderLock(source, deps);
}

function isDue({ expiresAtMs }: Tokens, now: number): boolean {
  return expiresAtMs !== null && expiresAtMs - EARLY_MS <= now;
}

function isRenewable({ refresh }: LoginSource, tokens: Tokens): boolean {
  return refresh !== null && tokens.refresh !== null && tokens.refused !== true;
}

async function renewUnderLock(source: LoginSource, deps: RefreshDeps): Promise<string> {
  const until = performance.now() + LOCK_WAIT_MS;
  for (;;) {
    using lock = tryLock(`${source.login}.lock`);
    const tokens = read(source);
    // Another process may have renewed it meanwhile, or learned that it cannot be renewed.
    if (!isDue(tokens, deps.now())) return tokens.access;
    if (!isRenewable(source, tokens)) return ifValid(source, tokens, deps.now());
    if (lock !== null) return await renew(source, tokens, deps);
    if (performance.now() > until) return ifValid(source, tokens, deps.now());
    await sleep(100);
  }
}

async function renew(source: LoginSource, tokens: Tokens, deps: RefreshDeps): Promise<string> {
  const { refresh } = source;
  if (refresh === null || tokens.refresh === null) throw needed(source);
  for (let attempt = 1; attempt <= TRIES; attempt++) {
    const answer = await deps.post(refresh.url, bodyOf(refresh, tokens.refresh));
    const fresh = answer?.status === 200 ? readAnswer(answer.text, tokens.refresh, deps.now()) : null;
    if (fresh !== null) {
      // Write before anything else: a pair that is lost here is lost for good.
      writeTokens(source.login, fresh);
      return fresh.access;
    }
    if (answer !== null && isFinal(answer.status)) {
      writeTokens(source.login, { ...tokens, refused: true });
      return ifValid(source, tokens, deps.now());
    }
    if (attempt < TRIES) await sleep((deps.pauseMs ?? 500) * 2 ** (attempt - 1));
  }
  if (isValid(tokens, deps.now())) return tokens.access;
  throw new AgsError(
    'auth.unreachable',
    `The sign-in for ${source.agent} has expired and could not be renewed just now.`,
    {
      hint: `Is ${new URL(refresh.url).hostname} reachable from here? If it lasts, sign in again: ags auth ${source.agent}`,
    },
  );
}

/** The server rejected the token. Any other failure may be temporary. */
function isFinal(status: number): boolean {
  return status === 400 || status === 401 || status === 403;
}

function bodyOf(refresh: TokenRefresh, token: string): { type: string; text: string } {
  const fields = { grant_type: 'refresh_token', refresh_token: token, client_id: refresh.clientId, ...refresh.more };
  return refresh.as === 'json'
    ? { type: 'application/json', text: JSON.stringify(fields) }
    : { type: 'application/x-www-form-urlencoded', text: new URLSearchParams(fields).toString() };
}

/** null: not a valid answer. */
function readAnswer(text: string, old: string, now: number): Tokens | null {
  let answer: { access_token?: unknown; refresh_token?: unknown; expires_in?: unknown };
  try {
    answer = (JSON.parse(text) ?? {}) as typeof answer;
  } catch {
    return null;
  }
  const { access_token: access, refresh_token: next, expires_in: seconds } = answer;
  if (!isToken(access) || (next !== undefined && next !== null && !isToken(next))) return null;
  const lasts = typeof seconds === 'number' && Number.isFinite(seconds) && seconds > 0 ? seconds : null;
  return {
    access,
    refresh: isToken(next) ? next : old,
    // Without a lifetime, assume an hour, as most servers use: a token that is never renewed would expire in the middle of a task.
    expiresAtMs: now + Math.min(lasts ?? 3600, MOST_SECONDS) * 1000,
  };
}

const MOST_SECONDS = 366 * 86_400;

/** A text that a header may hold. */
export function isToken(value: unknown): value is string {
  return typeof value === 'string' && value.length <= 16_384 && /^[\x21-\x7e]+$/.test(value);
}

function isValid({ expiresAtMs }: Tokens, now: number): boolean {
  return expiresAtMs === null || expiresAtMs > now;
}

function ifValid(source: LoginSource, tokens: Tokens, now: number): string {
  if (isValid(tokens, now)) return tokens.access;
  throw needed(source);
}

function read(source: LoginSource): Tokens {
  const tokens = readTokens(source.login, source.agent);
  if (tokens === null) throw needed(source);
  return tokens;
}

function needed({ agent }: LoginSource): AgsError {
  return new AgsError('auth.needed', `The sign-in for ${agent} has expired, and cannot be renewed.`, {
    hint: `Sign in again: ags auth ${agent}`,
  });
}
