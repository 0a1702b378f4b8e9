// test/agent-setup/refresh.full.test.ts: ags renews log-in tokens outside, once for all tasks, and stores them before use.
import { readdirSync, readFileSync, statSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test, vi } from 'vitest';
import { giveTo, USUAL } from '../harness.ts';
import { createPlace, type Place } from './fixture.ts';

const NOW = Date.now();
const HOUR = 3_600_000;
const WAIT = { timeout: 40_000, interval: 20 };
const dir = (place: Place, ...path: string[]): string => join(place.machine.stateDir, 'credentials', ...path);
const bearer = (head: string | undefined): string | undefined =>
  /^authorization: (.*)$/im.exec(head ?? '')?.[1]?.trim();

interface Tokens {
  access: string;
  refresh: string | null;
  expiresAtMs: number | null;
  refused?: boolean;
}

/** Stores tokens as `ags auth <agent> --login` does. */
function signIn(place: Place, agent: string, tokens: Tokens): void {
  mkdirSync(dir(place), { recursive: true, mode: 0o700 });
  writeFileSync(dir(place, `${agent}.tokens`), JSON.stringify(tokens), { mode: 0o600 });
  const about = { agent, kind: 'login', kept: 'file', ending: tokens.access.slice(-4), since: '2026-01-01T00:00:00Z' };
  writeFileSync(dir(place, `${agent}.json`), JSON.stringify(about), { mode: 0o600 });
  giveTo(place.machine.home, place.machine.uid);
}

const stored = (place: Place, agent = 'acme'): Tokens =>
  JSON.parse(readFileSync(dir(place, `${agent}.tokens`), 'utf8')) as Tokens;
const renewed = (n: number, more: object = {}): { status: number; text: string } => ({
  status: 200,
  text: JSON.stringify({ access_token: `access-${n}`, refresh_token: `refresh-${n}`, expires_in: 3600, ...more }),
});

describe.each(USUAL)('as %s', (caller) => {
  test('an expired token is renewed when a sandbox needs it; neither the old nor the new one is inside', async () => {
    await using place = await createPlace(caller);
    signIn(place, 'acme', { access: 'access-old', refresh: 'refresh-old', expiresAtMs: NOW - HOUR });
    place.tokens.answer = () => renewed(1);
    place.answer = (head) => `you sent ${bearer(head)}`;
    const script = `curl -sS "$ACME_BASE_URL/one"; curl -sS "$ACME_BASE_URL/two"; env; grep -rs "" "$HOME" /run . | head -c 1000000`;
    const result = await place.drive(['inside', 'acme', script]);
    expect(place.requests.map(bearer)).toEqual(['Bearer access-1', 'Bearer access-1']);
    expect(place.tokens.asked).toEqual([
      {
        type: 'application/x-www-form-urlencoded',
        body: 'grant_type=refresh_token&refresh_token=refresh-old&client_id=acme-client',
      },
    ]);
    expect(JSON.stringify(result)).not.toMatch(/access-1|access-old|refresh-/);
    expect(stored(place)).toMatchObject({ access: 'access-1', refresh: 'refresh-1' });
    expect(stored(place).expiresAtMs).toBeGreaterThan(NOW + HOUR / 2);
    expect(statSync(dir(place, 'acme.tokens')).mode & 0o777).toBe(0o600);
  });

  test('a token that expires while a sandbox runs is renewed during the run', async () => {
    await using place = await createPlace(caller);
    signIn(place, 'acme', { access: 'access-old', refresh: 'refresh-old', expiresAtMs: NOW + HOUR });
    place.tokens.answer = () => renewed(1);
    // The token expires with the answer to the first request.
    place.answer = () => {
      signIn(place, 'acme', { access: 'access-old', refresh: 'refresh-old', expiresAtMs: NOW - 1 });
      place.answer = () => '';
      return '';
    };
    await place.drive(['inside', 'acme', 'curl -sS "$ACME_BASE_URL/"; curl -sS "$ACME_BASE_URL/"']);
    expect(place.requests.map(bearer)).toEqual(['Bearer access-old', 'Bearer access-1']);
  });

  test('concurrent processes use a refresh token once, and all get the new token', async () => {
    await using place = await createPlace(caller);
    signIn(place, 'acme', { access: 'access-old', refresh: 'refresh-old', expiresAtMs: NOW - 1 });
    let go = (): void => undefined;
    const held = new Promise<void>((resolve) => (go = resolve));
    const used: string[] = [];
    place.tokens.answer = async (body) => {
      used.push(new URLSearchParams(body).get('refresh_token') ?? '');
      await held;
      return renewed(used.length);
    };
    const all = Array.from({ length: 6 }, () => {
      const child = place.start(['token', 'acme']);
      const said = { out: '', err: '' };
      child.stdout?.on('data', (chunk: Buffer) => (said.out += chunk.toString()));
      child.stderr?.on('data', (chunk: Buffer) => (said.err += chunk.toString()));
      return { said, ended: new Promise((resolve) => child.on('close', resolve)) };
    });
    // One process holds the lock and waits for the server; the others have tried the lock.
    await vi.waitFor(() => expect(all.every(({ said }) => said.err.split('looked').length > 2)).toBe(true), WAIT);
    go();
    await Promise.all(all.map(({ ended }) => ended));
    expect(all.map(({ said }) => said.out)).toEqual(Array(6).fill('access-1'));
    expect(used).toEqual(['refresh-old']);
    expect(readdirSync(dir(place)).toSorted()).toEqual(['acme.json', 'acme.tokens']);
  });

  test('a process killed during renewal frees the lock, and the old refresh token is tried again', async () => {
    await using place = await createPlace(caller);
    signIn(place, 'acme', { access: 'access-old', refresh: 'refresh-old', expiresAtMs: NOW - 1 });
    place.tokens.answer = () => new Promise(() => undefined);
    const child = place.start(['token', 'acme']);
    await vi.waitFor(() => expect(place.tokens.asked).toHaveLength(1), WAIT);
    child.kill('SIGKILL');
    await new Promise((resolve) => child.on('close', resolve));
    expect(stored(place)).toMatchObject({ access: 'access-old', refresh: 'refresh-old' });
    place.tokens.answer = () => renewed(2);
    expect((await place.drive(['token', 'acme'])).stdout).toBe('access-2');
  });

  test('a server that refuses is not asked again, and the user is told to sign in', async () => {
    await using place = await createPlace(caller);
    signIn(place, 'acme', { access: 'access-old', refresh: 'refresh-old', expiresAtMs: NOW - 1 });
    place.tokens.answer = () => ({ status: 400, text: '{"error":"invalid_grant","detail":"refresh-old"}' });
    const told = 'auth.needed: The sign-in for acme has expired, and cannot be renewed. Sign in again: ags auth acme';
    expect((await place.drive(['token', 'acme'])).stdout).toBe(told);
    expect((await place.drive(['token', 'acme'])).stdout).toBe(told);
    expect(place.tokens.asked).toHaveLength(1);
    const result = await place.drive(['inside', 'acme', 'curl -sS -w "%{http_code}" "$ACME_BASE_URL/"']);
    expect(result.stdout).toMatch(/ags cannot sign this request in: The sign-in for acme has expired[^]*401$/);
    expect(place.requests).toEqual([]);
    expect(JSON.parse((await place.ags(['auth', 'status', 'acme', '--json'])).stdout)).toMatchObject({
      agents: [{ renewed: false, problem: 'expired; sign in again' }],
    });
  });

  test('a failing server is asked three times; a token that is still valid is used meanwhile', async () => {
    await using place = await createPlace(caller);
    place.tokens.answer = () => ({ status: 503, text: 'refresh-old' });
    signIn(place, 'acme', { access: 'access-old', refresh: 'refresh-old', expiresAtMs: Date.now() + 120_000 });
    expect((await place.drive(['token', 'acme'])).stdout).toBe('access-old');
    expect(place.tokens.asked).toHaveLength(3);
    signIn(place, 'acme', { access: 'access-old', refresh: 'refresh-old', expiresAtMs: NOW - 1 });
    expect((await place.drive(['token', 'acme'])).stdout).toMatch(/^auth\.unreachable: [^]*Is tokens\.test reachable/);
    expect(stored(place)).toMatchObject({ refresh: 'refresh-old' });
    // Invalid answers.
    for (const more of [{ access_token: 'a\r\nX-Evil: 1' }, { access_token: 7 }, { refresh_token: ['x'] }]) {
      place.tokens.answer = () => renewed(3, more);
      expect((await place.drive(['token', 'acme'])).stdout).toMatch(/^auth\.unreachable/);
    }
  });

  test('a server with an untrusted certificate receives nothing', async () => {
    await using place = await createPlace(caller);
    signIn(place, 'acme', { access: 'access-old', refresh: 'refresh-old', expiresAtMs: NOW - 1 });
    place.tokens.answer = () => renewed(1);
    expect((await place.drive(['token', 'acme'], { SSL_CERT_FILE: '' })).stdout).toMatch(/^auth\.unreachable/);
    expect(place.tokens.asked).toEqual([]);
  });

  test("an agent's JSON format and extra fields are supported, and a refresh token that is not replaced is kept", async () => {
    await using place = await createPlace(caller);
    signIn(place, 'bolt', { access: 'access-old', refresh: 'refresh-old', expiresAtMs: NOW - 1 });
    place.tokens.answer = () => renewed(1, { refresh_token: undefined });
    expect((await place.drive(['token', 'bolt'])).stdout).toBe('access-1');
    expect(place.tokens.asked.map(({ type, body }) => [type, JSON.parse(body) as unknown])).toEqual([
      [
        'application/json',
        { grant_type: 'refresh_token', refresh_token: 'refresh-old', client_id: 'acme-client', scope: 'all' },
      ],
    ]);
    expect(stored(place, 'bolt')).toMatchObject({ access: 'access-1', refresh: 'refresh-old' });
  });
});
