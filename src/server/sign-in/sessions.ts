// server/sign-in/sessions.ts: who may come in. A link that works once gives a browser its session; scripts have a key in a file that only its
// owner can read.
// Invariant: no secret is in any file but the key; sessions are kept as hashes, so that a restart signs nobody out.
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

export interface Entry {
  /** For a link that works once, and not for long. */
  makeToken(): string;
  /** It is still good, and stays so. */
  isToken(token: string): boolean;
  /** The session, if the token is good. It is not good any more. */
  enter(token: string): string | null;
  isSession(session: string): boolean;
  isKey(key: string): boolean;
  /** Shows that we have the key, without showing it, to whoever has come to this address of ours. */
  prove(address: string, question: string): string;
  /** Under which browsers come. */
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

export function openEntry(directory: string, nowMs: () => number): Entry {
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  const key = readKey(directory);
  const file = join(directory, 'sessions.json');
  const tokens = new Map<string, number>();
  let known = { state: '', sessions: readSessions(file) };

  /** Another server may have let somebody in. */
  function sessions(): readonly KeptSession[] {
    // Two writes within one tick of the clock have one time, and two numbers.
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

/** Made once; whoever comes second takes the first one's. */
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

/** The address is part of it: a question that somebody hands on to us gets an answer which is not the one they need. */
export function proofOf(key: string, address: string, question: string): string {
  return createHmac('sha256', key).update(`ags serves ${address}: ${question}`).digest('hex');
}

/**
 * A cookie is sent to every port of the name it was set under, and a page can send the browser to any name that leads to this machine:
 * so that what an agent publishes at another port is never sent the session, it must not know the name. Every browser takes what ends
 * in .localhost for this machine, and each such name for another site.
 */
export function nameOf(key: string): string {
  return `ags-${createHmac('sha256', key).update('name').digest('hex').slice(0, 20)}.localhost`;
}

function readSessions(file: string): KeptSession[] {
  try {
    const { sessions } = JSON.parse(readFileSync(file, 'utf8')) as { sessions: KeptSession[] };
    return sessions.filter(({ hash, atMs }) => typeof hash === 'string' && typeof atMs === 'number');
  } catch {
    // None yet, or damaged: everybody enters again.
    return [];
  }
}

function hashOf(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

function same(a: string, b: string): boolean {
  return a.length === b.length && timingSafeEqual(Buffer.from(a), Buffer.from(b));
}
