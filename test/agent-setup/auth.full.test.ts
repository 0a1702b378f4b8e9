// test/agent-setup/auth.full.test.ts: one sign-in of an agent serves all sandboxes, and none of them sees the key.
import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test, vi } from 'vitest';
import { readProc } from '../attacks/host-view.ts';
import { openScreen } from '../e2e/screen.ts';
import { giveTo, USUAL } from '../harness.ts';
import { acmeProgram, createPlace, DIST, DRIVER, type Place } from './fixture.ts';

const newKey = (): string => `sk-CANARY-${randomBytes(12).toString('hex')}`;
const credentials = (place: Place, ...path: string[]): string => join(place.machine.stateDir, 'credentials', ...path);
const header = (head: string, name: string): string | undefined =>
  new RegExp(`^${name}: (.*)$`, 'im').exec(head)?.[1]?.trim();

/** Prints everything that a program inside can read and that might contain a secret. */
const SEARCH = `env; cat /proc/*/environ /proc/*/cmdline 2>/dev/null | tr '\\0' '\\n'; ps -ef 2>/dev/null
grep -rsI "" "$HOME" /run /etc/ssl /tmp . 2>/dev/null; cat /proc/self/mountinfo`;

describe.each(USUAL)('as %s', (caller) => {
  test('a key is read from standard input, stored for its owner only, and forgotten on request', async () => {
    await using place = await createPlace(caller);
    const key = newKey();
    expect(await place.ags(['auth', 'acme', '--key-stdin'], { input: `${key}\n` })).toEqual({
      code: 0,
      signal: null,
      stdout: `Acme Agent is signed in (...${key.slice(-4)}, kept in a file that only you can read). All tasks use it from now on.\n`,
      stderr: '',
    });
    const files = ['.', 'acme.json', 'acme.value'];
    expect(readdirSync(credentials(place)).toSorted()).toEqual(files.slice(1));
    expect(
      files.map((name) => [statSync(credentials(place, name)).mode & 0o777, statSync(credentials(place, name)).uid]),
    ).toEqual([0o700, 0o600, 0o600].map((mode) => [mode, place.machine.uid]));
    expect(readFileSync(credentials(place, 'acme.value'), 'utf8')).toBe(key);
    expect(readFileSync(credentials(place, 'acme.json'), 'utf8')).not.toContain(key);
    const status = await place.ags(['auth', 'status', '--json']);
    expect(JSON.parse(status.stdout)).toMatchObject({
      agents: [
        { agent: 'acme', kind: 'api-key', ending: key.slice(-4), where: 'file', expires: null, problem: null },
        { agent: 'bolt', kind: null, where: 'none' },
      ],
    });
    const shown = await Promise.all(
      [['auth', 'status'], ['agents'], ['agents', '--json']].map((args) => place.ags(args)),
    );
    expect(shown[0]?.stdout).toContain(`API key ...${key.slice(-4)}`);
    expect(JSON.stringify([status, ...shown])).not.toContain(key.slice(0, -4));
    // A file that others can write is not used.
    chmodSync(credentials(place, 'acme.json'), 0o666);
    expect((await place.ags(['auth', 'status'])).stderr).toContain('can be read or changed by others');
    chmodSync(credentials(place, 'acme.json'), 0o600);
    // A token replaces the key.
    expect(
      await place.ags(['auth', 'acme', '--key-stdin', '--token', '--json'], { input: 'tok-12345678' }),
    ).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('"kind": "token"') as string,
    });
    expect(await place.ags(['auth', 'remove', 'acme'])).toMatchObject({ code: 0 });
    expect(readdirSync(credentials(place))).toEqual([]);
    expect((await place.ags(['auth', 'remove', 'acme'])).stdout).toBe('Acme Agent was not signed in.\n');
  });

  test('the keychain receives the key through standard input and returns it', async () => {
    await using place = await createPlace(caller);
    const key = newKey();
    const dir = join(place.machine.root, 'keychain');
    mkdirSync(dir);
    const tool = `#!/bin/sh
printf '%s\\n' "$*" >> ${dir}/arguments
case "$1" in
  store) cat > ${dir}/value ;;
  lookup) cat ${dir}/value ;;
  clear) rm ${dir}/value ;;
esac
`;
    writeFileSync(join(dir, 'secret-tool'), tool, { mode: 0o755 });
    giveTo(place.machine.root, place.machine.uid);
    const env = { PATH: `${dir}:${place.env['PATH']}` };
    expect(await place.ags(['auth', 'acme', '--key-stdin', '--keychain'], { input: key, env })).toMatchObject({
      code: 0,
    });
    expect(readdirSync(credentials(place))).toEqual(['acme.json']);
    const child = place.start(['inside', 'acme', 'curl -sS "$ACME_BASE_URL/"'], env);
    await new Promise((resolve) => child.on('close', resolve));
    expect(header(place.requests[0] ?? '', 'x-api-key')).toBe(key);
    expect(await place.ags(['auth', 'remove', 'acme'], { env })).toMatchObject({ code: 0 });
    expect([existsSync(join(dir, 'value')), readdirSync(credentials(place))]).toEqual([false, []]);
    expect(readFileSync(join(dir, 'arguments'), 'utf8')).not.toContain(key);
  });

  test('an invalid key is refused with the reason and the right way', async () => {
    await using place = await createPlace(caller);
    const refused = async (args: string[], input = ''): Promise<[number | null, string]> => {
      const { code, stderr } = await place.ags(['auth', ...args], { input });
      return [code, stderr];
    };
    expect(await refused(['acme', '--key-stdin'], '\n')).toEqual([2, expect.stringContaining('It is empty.')]);
    expect(await refused(['acme', '--key-stdin'], 'sk-one sk-two\n')).toEqual([
      2,
      expect.stringContaining('There is a space or a line break in it'),
    ]);
    expect(await refused(['acme', '--key-stdin'], 'sk-12345678\nX-Evil: 1\n')).toEqual([
      2,
      expect.stringContaining('a space or a line break'),
    ]);
    expect(await refused(['acme', '--key-stdin'], 'sk-12345\u00e9678')).toEqual([
      2,
      expect.stringContaining('a character that no key contains'),
    ]);
    expect(await refused(['acme', 'sk-12345678'])).toEqual([
      2,
      expect.stringMatching(/A key cannot be an argument[^]*--key-stdin/),
    ]);
    expect(await refused(['acmee'])).toEqual([
      2,
      expect.stringMatching(/knows no agent "acmee"[^]*Did you mean: acme/),
    ]);
    expect(await refused(['acme'])).toEqual([2, expect.stringMatching(/no terminal[^]*--key-stdin/)]);
    expect(await refused(['acme', '--login'])).toEqual([2, expect.stringContaining('needs a terminal')]);
    expect(await refused(['acme', '--from-env', 'NOWHERE'])).toEqual([
      2,
      expect.stringContaining('NOWHERE is not set'),
    ]);
    expect(await refused(['acme', '--key-stdin', '--login'])).toEqual([
      2,
      expect.stringContaining('exclude each other'),
    ]);
    expect(await refused(['bolt', '--key-stdin', '--token'], 'x')).toEqual([
      2,
      expect.stringContaining('cannot be signed in that way'),
    ]);
    expect(await refused(['acme', '--key-stdin', '--keychain'], 'sk-12345678')).toEqual([
      2,
      expect.stringContaining('The keychain cannot be used'),
    ]);
    expect((await place.ags(['auth', 'plain'])).stderr).toBe('Plain needs no account.\n');
    expect(existsSync(credentials(place, 'acme.json'))).toBe(false);
    expect(await place.drive(['inside', 'acme', 'true'])).toMatchObject({ code: 44 });
  });

  test('A135, A138, A139, A142: the key reaches its host, and neither sandbox, log, event nor process list', async () => {
    await using place = await createPlace(caller);
    const key = newKey();
    // A host that echoes the header it receives.
    place.answer = (head) => `you sent ${header(head, 'x-api-key')}`;
    await place.ags(['auth', 'acme', '--key-stdin'], { input: key });
    const script = `curl -sS -H "x-api-key: $ACME_API_KEY" "$ACME_BASE_URL/v1/messages"; echo
${SEARCH}
cat "${credentials(place, 'acme.value')}"; ls "${credentials(place)}"`;
    const result = await place.drive(['inside', 'acme', script]);
    expect(place.requests.map((head) => [head.split('\r\n')[0], header(head, 'x-api-key')])).toEqual([
      ['GET /v1/messages HTTP/1.1', key],
    ]);
    expect(result.stdout).toContain(`you sent ${'*'.repeat(key.length)}`);
    expect(result.stdout).toMatch(/^ACME_API_KEY=ags-placeholder-agent-acme-/m);
    expect(result.stdout).toMatch(/^ACME_BASE_URL=http:\/\/127\.0\.0\.1:3129\/agent-acme$/m);
    expect(result.stderr).toContain('No such file or directory');
    expect(JSON.stringify(result)).not.toContain(key);
    // Searches everything that ags stores, except the credential.
    const kept = spawnSync('grep', ['-rl', key, place.machine.home], { encoding: 'utf8' }).stdout.trim();
    expect(kept).toBe(credentials(place, 'acme.value'));
  });

  test('A137: a placeholder is replaced in its own header, for its own host, and nowhere else', async () => {
    await using place = await createPlace(caller);
    const key = newKey();
    place.context.names.set('other.test', place.context.names.get('allowed.test') ?? []);
    writeFileSync(
      join(place.machine.home, '.config/ags/config.yaml'),
      `${readFileSync(join(place.machine.home, '.config/ags/config.yaml'), 'utf8')}  allow: [other.test]\n`,
    );
    await place.ags(['auth', 'bolt', '--key-stdin'], { input: key });
    const script = `curl -sS https://allowed.test/ -H "authorization: Bearer $BOLT_KEY"
curl -sS "https://allowed.test/$BOLT_KEY" -H "x-other: $BOLT_KEY" -d "$BOLT_KEY"
curl -sS --cacert "$CA" https://other.test/ -H "authorization: Bearer $BOLT_KEY"`;
    writeFileSync(join(place.machine.project, 'ca.crt'), place.context.authority.certificatePem);
    giveTo(place.machine.root, place.machine.uid);
    const result = await place.drive(['inside', 'bolt', `CA=ca.crt; ${script}`]);
    expect([result.code, result.stdout]).toEqual([0, 'hello world\n'.repeat(3)]);
    expect(header(place.requests[0] ?? '', 'authorization')).toBe(`Bearer ${key}`);
    expect(place.requests.slice(1).filter((request) => request.includes(key))).toEqual([]);
    expect(header(place.requests[2] ?? '', 'authorization')).toContain('ags-placeholder-agent-bolt');
  });

  test('a variable of the environment is used if nothing is stored, and is not visible inside', async () => {
    await using place = await createPlace(caller);
    const key = newKey();
    const env = { ACME_API_KEY: key };
    const result = await place.drive(['inside', 'acme', `curl -sS "$ACME_BASE_URL/"; ${SEARCH}`], env);
    expect(header(place.requests[0] ?? '', 'x-api-key')).toBe(key);
    expect(JSON.stringify(result)).not.toContain(key);
    const { stdout } = await place.ags(['auth', 'status', 'acme', '--json'], { env });
    expect(JSON.parse(stdout)).toMatchObject({
      agents: [{ where: 'environment', variable: 'ACME_API_KEY', ending: null }],
    });
    // The stored copy outlasts the variable.
    expect(await place.ags(['auth', 'acme', '--from-env', 'ACME_API_KEY'], { env })).toMatchObject({ code: 0 });
    await place.drive(['inside', 'acme', 'curl -sS "$ACME_BASE_URL/"']);
    expect(header(place.requests[1] ?? '', 'x-api-key')).toBe(key);
  });

  test('A142: while a sandbox runs, only its runner has the key, and not in its arguments', async () => {
    await using place = await createPlace(caller);
    const key = newKey();
    await place.ags(['auth', 'acme', '--key-stdin'], { input: key });
    const child = place.start(['inside', 'acme', 'curl -sS "$ACME_BASE_URL/"; echo ready; sleep 300']);
    let said = '';
    child.stdout?.on('data', (chunk: Buffer) => (said += chunk.toString()));
    await vi.waitFor(() => expect(said).toContain('ready'), { timeout: 40_000, interval: 20 });
    const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid);
    const seen = pids.filter((pid) => readProc(pid, 'cmdline').includes(key) || readProc(pid, 'environ').includes(key));
    child.kill('SIGTERM');
    await new Promise((resolve) => child.on('close', resolve));
    expect(seen).toEqual([]);
    expect(place.requests).toHaveLength(1);
  });

  test('on a terminal the key is asked for and not shown', async () => {
    await using place = await createPlace(caller);
    const key = newKey();
    using screen = await openScreen(place.machine, { env: { ...place.env, BOLT_KEY: 'from-environment' } });
    screen.type(`${process.execPath} ${DRIVER} ${DIST} cli auth acme\n`);
    await screen.until('Number [1]:');
    screen.type('1\n');
    await screen.until('Key (it is not shown):');
    screen.type(`${key}\n`);
    const { shown, code } = await screen.ended();
    expect([code, shown.includes(key), shown.includes(`...${key.slice(-4)}`)]).toEqual([0, false, true]);
    expect(readFileSync(credentials(place, 'acme.value'), 'utf8')).toBe(key);
    // ags offers the variable of the environment.
    await screen.clear();
    screen.type(`${process.execPath} ${DRIVER} ${DIST} cli auth bolt\n`);
    await screen.until('Number [1]:');
    screen.type('\n');
    await screen.until('BOLT_KEY is set in your environment');
    screen.type('y\n');
    expect((await screen.ended()).code).toBe(0);
    expect(readFileSync(credentials(place, 'bolt.value'), 'utf8')).toBe('from-environment');
    // Cancelling changes nothing.
    await screen.clear();
    screen.type(`${process.execPath} ${DRIVER} ${DIST} cli auth acme --token\n`);
    await screen.until('Token (it is not shown):');
    screen.press('C-c');
    const cancelled = await screen.ended();
    expect([cancelled.code, cancelled.shown.trim().split('\n').at(-1)]).toEqual([130, 'ags: Cancelled.']);
    expect(readFileSync(credentials(place, 'acme.value'), 'utf8')).toBe(key);
  }, 90_000);

  test("the agent's own log-in runs in a sandbox; ags keeps its tokens and deletes its home", async () => {
    await using place = await createPlace(caller);
    const token = newKey();
    // A host file that the log-in must not read.
    const bait = join(place.machine.root, 'bait');
    mkdirSync(bait);
    writeFileSync(join(bait, 'auth.json'), JSON.stringify({ access: 'bait-12345678' }));
    const logIn = `
process.stdout.write('Paste the code: ');
process.stdin.once('data', (chunk) => {
  const [how, word] = chunk.toString().trim().split(' ');
  if (how === 'parent') { fs.symlinkSync('${bait}', home + '/.acme'); process.exit(0); }
  fs.mkdirSync(home + '/.acme');
  const file = home + '/.acme/auth.json';
  if (how === 'link') fs.symlinkSync('${bait}/auth.json', file);
  else if (how === 'pipe') require('child_process').execFileSync('mkfifo', [file]);
  else if (how === 'large') fs.writeFileSync(file, JSON.stringify({ access: word }) + ' '.repeat(100000));
  else if (how === 'odd') fs.writeFileSync(file, JSON.stringify({ access: word, more: 1 }));
  else if (how === 'header') fs.writeFileSync(file, JSON.stringify({ access: 'a\\r\\nX-Evil: 1' }));
  else if (how === 'ok') fs.writeFileSync(file, JSON.stringify({ access: word, refresh: 'refresh-' + word, expires: Date.now() + 3600000 }));
  process.exit(0);
});`;
    place.registry.publish('acme-agent', '1.0.0', { 'bin/acme.js': acmeProgram('1.0.0', logIn) });
    expect(await place.ags(['agents', 'install', 'acme'])).toMatchObject({ code: 0 });
    using screen = await openScreen(place.machine, { env: place.env });
    const attempt = async (code: string): Promise<{ shown: string; code: number }> => {
      await screen.clear();
      screen.type(`${process.execPath} ${DRIVER} ${DIST} cli auth acme --login\n`);
      await screen.until('Paste the code:', 60_000);
      screen.type(`${code}\n`);
      return screen.ended(60_000);
    };
    for (const how of ['none', 'parent', 'link', 'pipe', 'large', 'odd', 'header']) {
      const { shown, code } = await attempt(`${how} ${token}`);
      expect([how, code]).toEqual([how, 4]);
      expect(shown.replaceAll(/\s+/g, ' ')).toContain('The log-in of Acme Agent failed:');
      expect(existsSync(credentials(place, 'acme.json'))).toBe(false);
    }
    expect(await attempt(`ok ${token}`)).toMatchObject({ code: 0 });
    expect(readdirSync(credentials(place)).toSorted()).toEqual(['acme.json', 'acme.tokens']);
    expect(statSync(credentials(place, 'acme.tokens')).mode & 0o777).toBe(0o600);
    const kept = spawnSync('grep', ['-rl', token, place.machine.home], { encoding: 'utf8' }).stdout.trim();
    expect(kept).toBe(credentials(place, 'acme.tokens'));
    expect(readdirSync(place.machine.stateDir).filter((name) => name.startsWith('.apart-'))).toEqual([]);
    const result = await place.drive(['inside', 'acme', `curl -sS "$ACME_BASE_URL/"; ${SEARCH}`]);
    expect(header(place.requests.at(-1) ?? '', 'authorization')).toBe(`Bearer ${token}`);
    expect(JSON.stringify(result)).not.toContain(token);
    const { stdout } = await place.ags(['auth', 'status', 'acme', '--json']);
    expect(JSON.parse(stdout)).toMatchObject({ agents: [{ kind: 'login', renewed: true, problem: null }] });
  }, 180_000);
});
