// server/sign-in/sessions.ts: sessions of browsers and the key for scripts. A link that works once gives a browser its session; the key is
// in a file that only its owner can read.
// Invariant: the key is the only secret in a file. Sessions are stored as hashes, so they survive a restart.
import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import {
  closeSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { replaceFile } from '../../lib/files.ts';

export interface Sessions {
  /** Creates a token for a link that works once and expires soon. */
  makeToken(): string;
  /** Checks a token without using it up. */
  isToken(token: string): boolean;
  /** Uses the token up and returns a session; null if the token is invalid. */
  enter(token: string): string | null;
  isSession(session: string): boolean;
  isKey(key: string): boolean;
  /** Proves knowledge of the key, without revealing it, to a client that connected to this address. */
  prove(address: string, question: string): string;
  /** The host name that browsers use. */
  readonly name: string;
}

const TOKEN_MS = 60 * 60_000;
const SESSION_MS = 30 * 24 * 60 * 60_000;
const MAX_TOKENS = 100;
const MAX_SESSIONS = 100;

interface KeptSession {
  readonly hash: string;
  readonly atMs: number;
}

export function openSessions(directory: string, nowMs: () => number): Sessions {
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  const key = readKey(directory);
  const file = join(directory, 'sessions.json');
  const tokens = new Map<string, number>();
  let known = { state: '', sessions: readSessions(file) };

  /** Reads the file again if another server has added a session. */
  function sessions(): readonly KeptSession[] {
    // Two writes within one clock tick have the same time but different inodes.
    const { ino, mtimeMs } = statSync(file, { throwIfNoEntry: false }) ?? { ino: 0, mtimeMs: 0 };
    const state = `${ino} ${mtimeMs}`;
    if (state !== known.state) known = { state, sessions: readSessions(file) };
    return known.sessions.filter(({ atMs }) => nowMs() - atMs < SESSION_MS);
  }

  return {
    makeToken() {
      const token = randomBytes(24).toString('base64url');
      if (tokens.size >= MAX_TOKENS) tokens.delete([...tokens.keys()][0] ?? '');
      tokens.set(hashOf(token), nowMs() + TOKEN_MS);
      return token;
    },
    isToken: (token) => (tokens.get(hashOf(token)) ?? 0) >= nowMs(),
    enter(token) {
      const hash = hashOf(token);
      const until = tokens.get(hash);
      tokens.delete(hash);
      if (until === undefined || until < nowMs()) return null;
      const session = randomBytes(32).toString('base64url');
      const kept = [...sessions().slice(1 - MAX_SESSIONS), { hash: hashOf(session), atMs: nowMs() }];
      replaceFile(file, `${JSON.stringify({ version: 1, sessions: kept })}\n`);
      known = { state: '', sessions: kept };
      return session;
    },
    isSession(session) {
      const hash = hashOf(session);
      return sessions().some((one) => same(one.hash, hash));
    },
    isKey: (given) => same(hashOf(given), hashOf(key)),
    prove: (address, question) => proofOf(key, address, question),
    name: nameOf(key),
  };
}

/** The key is created once; a second server that starts at the same time uses the first one's. */
export function readKey(directory: string): string {
  const file = join(directory, 'key');
  const read = (): string | null => {
    try {
      return readFileSync(file, 'utf8').trim() || null;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
      throw error;
    }
  };
  const there = read();
  if (there !== null) return there;
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  const fresh = `${file}.${process.pid}.new`;
  const fd = openSync(fresh, 'w', 0o600);
  writeSync(fd, `${randomBytes(32).toString('base64url')}\n`);
  fsyncSync(fd);
  closeSync(fd);
  try {
    linkSync(fresh, file);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  } finally {
    rmSync(fresh, { force: true });
  }
  return read() ?? '';
}

/** The address is part of the proof, so an attacker who relays our challenge to a real server gets an answer for another address. */
export function proofOf(key: string, address: string, question: string): string {
  return createHmac('sha256', key).update(`ags serves ${address}: ${question}`).digest('hex');
}

/**
 * Browsers send a cookie to every port of the host name that set it, and a page can redirect to any name that resolves to this machine.
 * A server that an agent starts on another port must never receive the session, so the host name contains a hash of the key. Browsers
 * resolve every name below .localhost to this machine, and treat each as a separate site.
 */
export function nameOf(key: string): string {
  return `ags-${createHmac('sha256', key).update('name').digest('hex').slice(0, 20)}.localhost`;
}

function readSessions(file: string): KeptSession[] {
  try {
    const { sessions } = JSON.parse(readFileSync(file, 'utf8')) as { sessions: KeptSession[] };
    return sessions.filter(({ hash, atMs }) => typeof hash === 'string' && typeof atMs === 'number');
  } catch {
    // No file yet, or a damaged one: every browser signs in again.
    return [];
  }
}

function hashOf(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

function same(a: string, b: string): boolean {
  return a.length === b.length && timingSafeEqual(Buffer.from(a), Buffer.from(b));
}
