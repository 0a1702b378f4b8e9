// test/server/sign-in.test.ts: lifetimes and storage of links, sessions and the key; files of the page; and ids in URLs.
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { nameOf, openSessions, proofOf, readKey } from '../../src/server/sign-in/sessions.ts';
import { openPage } from '../../src/server/page.ts';
import { createRouter } from '../../src/server/routes/route.ts';
import { ROUTES } from '../../src/server/routes/routes.ts';

const HOUR = 3_600_000;
let directory: string;
let now: number;
const open = () => openSessions(directory, () => now);
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'ags-entry-'));
  now = 1_000_000_000_000;
});
afterEach(() => rmSync(directory, { recursive: true }));

test('A130: a link works once and for an hour, a session for thirty days, on every server of the same user', () => {
  const [one, other] = [open(), open()];
  const token = one.makeToken();
  expect([one.isToken(token), other.isToken(token), other.enter(token)]).toEqual([true, false, null]);
  const session = one.enter(token) ?? '';
  expect([session.length, one.isToken(token), one.enter(token)]).toEqual([43, false, null]);
  expect([one.isSession(session), other.isSession(session), open().isSession(session)]).toEqual([true, true, true]);
  const late = one.makeToken();
  now += HOUR + 1;
  expect([one.isToken(late), one.enter(late)]).toEqual([false, null]);
  now += 30 * 24 * HOUR;
  expect([one.isSession(session), one.isSession('')]).toEqual([false, false]);
});

test('links and sessions are limited, and the oldest expire first', () => {
  const entry = open();
  const tokens = Array.from({ length: 101 }, () => entry.makeToken());
  expect([entry.isToken(tokens[0] ?? ''), entry.isToken(tokens[1] ?? '')]).toEqual([false, true]);
  const sessions = Array.from({ length: 101 }, () => entry.enter(entry.makeToken()) ?? '');
  expect([entry.isSession(sessions[0] ?? ''), entry.isSession(sessions[1] ?? '')]).toEqual([false, true]);
});

test('A130: only the owner can read the stored hashes and key, and a damaged file grants no access', () => {
  const entry = open();
  const session = entry.enter(entry.makeToken()) ?? '';
  const key = readKey(directory);
  expect([key.length, readKey(directory) === key, entry.isKey(key), entry.isKey('')]).toEqual([43, true, true, false]);
  expect(readFileSync(join(directory, 'sessions.json'), 'utf8')).not.toContain(session);
  expect(['key', 'sessions.json'].map((name) => statSync(join(directory, name)).mode & 0o077)).toEqual([0, 0]);
  for (const [i, damaged] of ['', '{"sessions":', '{}', 'null', '{"sessions":[null]}', '{"sessions":{}}'].entries()) {
    writeFileSync(join(directory, 'sessions.json'), damaged + ' '.repeat(i));
    expect(open().isSession(session), damaged).toBe(false);
  }
});

test('a proof is for one address and one key, and the host name reveals nothing about the key', () => {
  const proofs = [
    proofOf('a', '127.0.0.1:1', 'q'),
    proofOf('a', '127.0.0.1:2', 'q'),
    proofOf('a', '127.0.0.1:1', 'r'),
    proofOf('b', '127.0.0.1:1', 'q'),
  ];
  expect(new Set(proofs).size).toBe(4);
  expect(nameOf('a')).toMatch(/^ags-[0-9a-f]{20}\.localhost$/);
  expect(nameOf('a')).not.toBe(nameOf('b'));
});

test("the server serves plain files below the page's directory, by exact name", () => {
  mkdirSync(join(directory, 'page/assets'), { recursive: true });
  writeFileSync(join(directory, 'secret'), 'secret');
  writeFileSync(join(directory, 'page/index.html'), 'index');
  writeFileSync(join(directory, 'page/assets/main-AbCd1234.js'), 'script');
  symlinkSync('../secret', join(directory, 'page/link'));
  symlinkSync('..', join(directory, 'page/up'));
  const page = openPage(join(directory, 'page'));
  for (const path of ['/link', '/up/secret', '/../secret', '/assets/../../secret', '/assets', '//index.html', '/', ''])
    expect(page.file(path), path).toBe(null);
  expect(String(page.file('/assets/main-AbCd1234.js')?.body)).toBe('script');
  // Slow clients share one buffer.
  expect(page.file('/assets/main-AbCd1234.js')?.body).toBe(page.file('/assets/main-AbCd1234.js')?.body);
});

test('an id in a URL is an id, and never a path', () => {
  const find = createRouter(ROUTES);
  expect(find('GET', '/api/tasks/fix-dates-2').ids).toEqual({ task: 'fix-dates-2' });
  for (const id of ['', '.', '..', '-x', '@', 'A', '__proto__', 'a%2fb', 'a\0', 'a b', 'ü', 'x'.repeat(65)])
    for (const path of [`/api/tasks/${id}`, `/api/tasks/x/changes/${id}/files/0`, `/api/projects/${id}/branches`])
      expect(() => find('GET', path), path).toThrow('nothing at this address');
  expect(() => find('PUT', '/api/tasks/x')).toThrow('not allowed here');
});
