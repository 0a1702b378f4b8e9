// test/run/network-live.full.test.ts: rules that change while a sandbox runs, secrets that never enter it, budgets, and cleanup
// after a killed runner.
// needs: sandbox, curl, wget, python3, openssl, low-ports
import { existsSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { processesWith } from '../attacks/host-view.ts';
import { createWorld, ORIGIN, type HostContext } from '../gateway/fixture.ts';
import { startHttpProxy, startSocksProxy } from '../gateway/proxies.ts';
import { type Caller, createMachine, giveTo, type Machine, USUAL } from '../harness.ts';

interface Place extends AsyncDisposable {
  readonly context: HostContext;
  readonly machine: Machine;
  readonly requests: string[];
  configure(yaml: string): void;
}

async function createPlace(caller: Caller, yaml = ''): Promise<Place> {
  const context = await createWorld();
  const requests: string[] = [];
  await context.tls(443, (socket) => {
    let text = '';
    socket.on('data', (chunk: Buffer) => {
      text += chunk.toString('latin1');
      if (!text.includes('\r\n\r\n') || text.startsWith('PUT')) return;
      requests.push(text);
      const body = `you sent ${/^authorization: (.*)\r$/im.exec(text)?.[1] ?? 'nothing'}\n`;
      socket.end(`HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\nConnection: close\r\n\r\n${body}`);
      text = '';
    });
  });
  for (const name of ['one.test', 'two.test', 'api.test']) context.names.set(name, [ORIGIN]);
  const machine = createMachine(caller);
  const place: Place = {
    context,
    machine,
    requests,
    configure(more) {
      const dir = join(machine.home, '.config/ags');
      machine.write('ca.crt', context.authority.certificatePem);
      writeFileSync(join(machine.home, '.profile-ca.pem'), context.authority.certificatePem);
      machine.write(
        '../../.config/ags/config.yaml',
        `network:\n  dns: ["${context.dns}"]\n  addresses: ["${ORIGIN}/32"]\n${more}`,
      );
      expect(existsSync(dir)).toBe(true);
      giveTo(machine.home, machine.uid);
    },
    async [Symbol.asyncDispose]() {
      machine[Symbol.dispose]();
      await context[Symbol.asyncDispose]();
    },
  };
  place.configure(yaml);
  return place;
}

/** Starts a sandbox that fetches the host of each input line and prints curl's exit code. */
function startAsking(machine: Machine, ...flags: string[]) {
  const script = 'while read host; do curl -sS -m 20 --cacert ca.crt "https://$host/" 2>&1; echo "$host $?"; done';
  const child = machine.start(['exec', '--review', 'later', ...flags, '--', 'sh', '-c', script]);
  let [stdout, stderr] = ['', ''];
  child.stdout?.on('data', (chunk: Buffer) => (stdout += chunk.toString('utf8')));
  child.stderr?.on('data', (chunk: Buffer) => (stderr += chunk.toString('utf8')));
  return {
    child,
    stderr: () => stderr,
    async ask(host: string): Promise<string> {
      const before = stdout.length;
      child.stdin?.write(`${host}\n`);
      await expect.poll(() => stdout.slice(before), { timeout: 30_000 }).toMatch(new RegExp(`${host} \\d+\\n`));
      return stdout.slice(before);
    },
    async end(): Promise<number | null> {
      child.stdin?.end();
      return new Promise((resolve) => (child.exitCode === null ? child.on('close', resolve) : resolve(child.exitCode)));
    },
  };
}

describe.each(USUAL)('as %s', (caller) => {
  test('a host can be allowed and denied again while a sandbox runs', async () => {
    await using place = await createPlace(caller);
    const { machine } = place;
    const sandbox = startAsking(machine);
    expect(await sandbox.ask('one.test')).toContain('one.test 56');
    const allowed = await machine.ags(['allow', 'one.test']);
    expect(allowed).toMatchObject({ code: 0 });
    expect(await sandbox.ask('one.test')).toContain('one.test 0');
    expect(await sandbox.ask('two.test')).toContain('two.test 56');
    expect(await machine.ags(['deny', 'one.test'])).toMatchObject({ code: 0 });
    expect(await sandbox.ask('one.test')).toContain('one.test 56');
    expect(await sandbox.end()).toBe(0);
    const log = JSON.parse((await machine.ags(['net', 'log', '--json'])).stdout) as {
      decisions: { host: string; verdict: string; program?: string }[];
    };
    expect(log.decisions.map(({ host, verdict }) => `${host} ${verdict}`)).toEqual([
      'one.test denied',
      'one.test allowed',
      'two.test denied',
      'one.test denied',
    ]);
    // An allowed program may end before ags looks it up, and on a busy machine a denied one may not be found in time.
    const denied = log.decisions.filter(({ verdict }) => verdict === 'denied');
    expect(new Set(denied.flatMap(({ program }) => program?.split(' ')[0] ?? []))).toEqual(new Set(['curl']));
  });

  test('in record mode a new host waits for an answer, and ags net lock writes it to ags.yaml, comments kept', async () => {
    await using place = await createPlace(caller);
    const { machine } = place;
    machine.write('ags.yaml', '# ours\nenv:\n  set: { A: b } # kept\n');
    const sandbox = startAsking(machine, '--network', 'record');
    const answer = sandbox.ask('one.test');
    await expect
      .poll(async () => (await machine.ags(['net', 'asks'])).stdout, { timeout: 20_000 })
      .toContain('one.test');
    expect(place.requests).toEqual([]);
    expect(await machine.ags(['allow', 'one.test'])).toMatchObject({ code: 0 });
    expect(await answer).toContain('one.test 0');
    expect(await sandbox.end()).toBe(0);
    expect(await machine.ags(['net', 'lock', '--yes'])).toMatchObject({ code: 0 });
    expect(machine.read('ags.yaml')).toContain('# ours\nenv:\n  set: { A: b } # kept\n');
    const again = startAsking(machine);
    expect(await again.ask('one.test')).toContain('one.test 0');
    await again.end();
  });

  test('A135, A137, A142: a secret is inserted outside, only for its host and header; inside there is a placeholder', async () => {
    const secret = 's3cr3t-value-of-the-user';
    await using place = await createPlace(
      caller,
      `  allow: [two.test]
secrets:
  - { name: api, host: api.test, header: authorization, env: API_TOKEN, from: { env: REAL_TOKEN } }
`,
    );
    const { machine } = place;
    const env = { REAL_TOKEN: secret, NODE_EXTRA_CA_CERTS: join(machine.home, '.profile-ca.pem') };
    const script = `env; cat /proc/*/environ /proc/*/cmdline 2>/dev/null | tr '\\0' '\\n'
      curl -sS -H "Authorization: Bearer $API_TOKEN" "https://api.test/x?t=$API_TOKEN" -d "$API_TOKEN"
      curl -sS --cacert ca.crt -H "Authorization: Bearer $API_TOKEN" https://two.test/
      echo "token: $API_TOKEN"`;
    const result = await machine.ags(['exec', '--review', 'later', '--', 'sh', '-c', script], { env });
    const placeholder = /^token: (.*)$/m.exec(result.stdout)?.[1] ?? '';
    expect(placeholder).toMatch(/^ags-placeholder-api-[0-9a-f]{24}$/);
    expect(result.stdout).not.toContain(secret);
    const [api = '', other = ''] = place.requests;
    expect(api).toContain(`Authorization: Bearer ${secret}\r\n`);
    expect(api.match(new RegExp(secret, 'g'))).toHaveLength(1);
    expect(api).toContain(`/x?t=${placeholder}`);
    expect(other).toContain(`Authorization: Bearer ${placeholder}\r\n`);
    // The origin echoes the secret; the gateway masks it in the response.
    expect(result.stdout).toContain(`you sent Bearer ${'*'.repeat(secret.length)}\n`);
    expect(readAll(machine.stateDir)).not.toContain(secret);
  });

  test.each([
    ['curl', 'curl -sS https://api.test/'],
    ['wget', 'wget -q -O - https://api.test/'],
    ['Python', `/usr/bin/python3 -c 'import urllib.request as u; print(u.urlopen("https://api.test/").read())'`],
    ['Node', `node -e 'fetch("https://api.test/").then((r) => r.text()).then(console.log)'`],
    ['git', 'git ls-remote https://api.test/x.git 2>&1 | grep -v certificate; true'],
    [
      'Java',
      `cat > /tmp/G.java <<'END'
public class G { public static void main(String[] a) throws Exception {
  System.out.println(new String(new java.net.URL("https://api.test/").openStream().readAllBytes())); } }
END
java /tmp/G.java`,
    ],
  ])('%s trusts the authority of its sandbox', async (_, script) => {
    await using place = await createPlace(
      caller,
      `secrets:\n  - { name: api, host: api.test, header: x-key, send: "{}", from: { env: REAL_TOKEN } }\n`,
    );
    const env = { REAL_TOKEN: 'value-of-it', NODE_EXTRA_CA_CERTS: join(place.machine.home, '.profile-ca.pem') };
    const result = await place.machine.ags(['exec', '--', 'sh', '-c', script], { env });
    expect(result.stderr.replace(/^Picked up .*\n/, '')).toBe('');
    expect(place.requests[0]).toContain('x-key: value-of-it\r\n');
  });

  test('a loopback endpoint needs no certificate authority, and reaches only its host', async () => {
    await using place = await createPlace(
      caller,
      `secrets:\n  - { name: model, host: api.test, header: authorization, send: "Bearer {}", endpoint: MODEL_URL, from: { env: REAL_TOKEN } }\n`,
    );
    const env = { REAL_TOKEN: 'key-of-the-model', NODE_EXTRA_CA_CERTS: join(place.machine.home, '.profile-ca.pem') };
    const script =
      'echo "$MODEL_URL"; curl -sS "$MODEL_URL/v1/messages"; curl -sS -H "Host: two.test" "$MODEL_URL/v1/x"; ls /run/ags 2>&1';
    const result = await place.machine.ags(['exec', '--', 'sh', '-c', script], { env });
    expect(result.stdout).toContain('http://127.0.0.1:3129/model\nyou sent Bearer ****************\n');
    expect(place.requests.map((text) => text.split('\r\n')[0])).toEqual([
      'GET /v1/messages HTTP/1.1',
      'GET /v1/x HTTP/1.1',
    ]);
    for (const text of place.requests) expect(text).toMatch(/^host: api\.test\r$/im);
  });

  test('rules about methods and paths apply to each request', async () => {
    await using place = await createPlace(caller, '  allow: ["GET api.test/v1/*"]\n');
    const env = { NODE_EXTRA_CA_CERTS: join(place.machine.home, '.profile-ca.pem') };
    const status = (more: string) => `curl -sS -o /dev/null -w '%{http_code}\\n' ${more};`;
    const script = `${status('https://api.test/v1/a')} ${status('https://api.test/v2/a')} ${status('-X POST https://api.test/v1/a')}
      ${status('--path-as-is https://api.test/v1/../v2/a')} ${status('--path-as-is https://api.test/v1/%2e%2e/v2/a')} ${status('-H "Host: two.test" https://api.test/v1/a')}`;
    const result = await place.machine.ags(['exec', '--', 'sh', '-c', script], { env });
    expect(result.stdout).toBe('200\n403\n403\n400\n400\n421\n');
    expect(place.requests).toHaveLength(1);
  });

  test.each(['http', 'socks5'] as const)(
    'a %s upstream proxy is used, with its password, only for its hosts',
    async (kind) => {
      const names = { 'one.test': ORIGIN, 'two.test': ORIGIN };
      const proxy = await (kind === 'http' ? startHttpProxy(names, 'me:pass') : startSocksProxy(names, 'me:pass'));
      try {
        await using place = await createPlace(
          caller,
          `  allow: [one.test, two.test]\n  upstream:\n    - { proxy: "${kind}://127.0.0.1:${proxy.port}", auth: { env: PROXY_AUTH }, hosts: [one.test], resolve: there }\n`,
        );
        const script =
          'curl -sS --cacert ca.crt https://one.test/ && curl -sS --cacert ca.crt https://two.test/; env | grep -c me:pass';
        const result = await place.machine.ags(['exec', '--', 'sh', '-c', script], { env: { PROXY_AUTH: 'me:pass' } });
        expect(result.stdout).toBe('you sent nothing\nyou sent nothing\n0\n');
        expect(place.requests).toHaveLength(2);
        // A SOCKS5 client sends three messages.
        expect(proxy.heard).toHaveLength(kind === 'http' ? 1 : 3);
        // With `resolve: there` the proxy resolves its host, so this machine resolves only the other.
        expect(place.context.asked).toEqual(['two.test']);
      } finally {
        await proxy.close();
      }
    },
  );

  test('when the limit on sent bytes is reached, nothing more is sent, and ags says so', async () => {
    await using place = await createPlace(caller, '  allow: [one.test]\n  limits: { bytesOut: 100k }\n');
    const script = `head -c 400000 /dev/zero | curl -sS --cacert ca.crt -T - https://one.test/up 2>&1; echo "upload $?"; curl -sS --cacert ca.crt https://one.test/; echo "later $?"`;
    const result = await place.machine.ags(['exec', '--', 'sh', '-c', script]);
    expect(result.stdout).toMatch(/upload (35|55|56)\n/);
    expect(result.stdout).toContain('later 56');
    expect(result.stderr).toContain('that this run may send are spent (network.limits.bytesOut)');
  });

  test('a killed runner leaves no network and no process', async () => {
    await using place = await createPlace(caller, '  allow: [one.test]\n');
    const { machine } = place;
    const sandbox = startAsking(machine, '--publish', '4000');
    expect(await sandbox.ask('one.test')).toContain('one.test 0');
    sandbox.child.kill('SIGKILL');
    await expect.poll(() => processesWith(machine.stateDir), { timeout: 20_000 }).toEqual([]);
  });
});

function readAll(directory: string): string {
  return readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => readFileSync(join(entry.parentPath, entry.name), 'latin1'))
    .join('\n');
}
