// test/run/network.full.test.ts: the network of real sandboxes, with real programs inside and real origins outside.
// needs: sandbox, curl, wget, python3, openssl, postgres, low-ports
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { createServer as createTcp } from 'node:net';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { createWorld, ORIGIN, type HostContext } from '../gateway/fixture.ts';
import { type Caller, createMachine, type Machine, type Result, USUAL } from '../harness.ts';

interface Place extends AsyncDisposable {
  readonly context: HostContext;
  readonly machine: Machine;
  /** Requests that reached the origin. */
  readonly requests: string[];
  sh(script: string, ...flags: string[]): Promise<Result>;
}

/** An origin, a name server, and a user whose configuration permits the origin's address. */
async function createPlace(caller: Caller, config = ''): Promise<Place> {
  const context = await createWorld();
  const requests: string[] = [];
  const respond = (socket: NodeJS.ReadWriteStream & { end(text: string): unknown }): void => {
    let text = '';
    socket.on('data', (chunk: Buffer) => {
      text += chunk.toString('latin1');
      if (!text.includes('\r\n\r\n')) return;
      requests.push(text);
      socket.end('HTTP/1.1 200 OK\r\nContent-Length: 12\r\nConnection: close\r\n\r\nhello world\n');
    });
  };
  await context.tls(443, respond);
  await context.tcp(80, respond);
  context.names.set('evil.test', [ORIGIN]);
  context.names.set('a.wild.test', [ORIGIN]);
  const machine = createMachine(caller);
  mkdirSync(join(machine.home, '.config/ags'), { recursive: true });
  writeFileSync(
    join(machine.home, '.config/ags/config.yaml'),
    `network:\n  dns: ["${context.dns}"]\n  addresses: ["${ORIGIN}/32"]\n  allow: [allowed.test, "*.wild.test", "http://allowed.test"]\n${config}`,
  );
  machine.write('ca.crt', context.authority.certificatePem);
  return {
    context,
    machine,
    requests,
    sh: (script, ...flags) => machine.ags(['exec', ...flags, '--', 'sh', '-c', script]),
    async [Symbol.asyncDispose]() {
      machine[Symbol.dispose]();
      await context[Symbol.asyncDispose]();
    },
  };
}

describe.each(USUAL)('as %s', (caller) => {
  test.each([
    ['curl', 'curl -sS --cacert ca.crt https://allowed.test/'],
    ['curl over http', 'curl -sS http://allowed.test/'],
    ['curl through SOCKS5', 'curl -sS --cacert ca.crt -x socks5h://127.0.0.1:3128 https://allowed.test/'],
    ['curl without a proxy', "curl -sS --noproxy '*' --cacert ca.crt https://allowed.test/"],
    ['curl over http without a proxy', "curl -sS --noproxy '*' http://allowed.test/"],
    ['curl to a name below a suffix', "curl -sS --noproxy '*' --cacert ca.crt https://a.wild.test/"],
    ['wget', 'wget -q -O - --ca-certificate=ca.crt https://allowed.test/'],
    [
      'Python',
      `SSL_CERT_FILE=ca.crt /usr/bin/python3 -c 'import urllib.request as u; print(u.urlopen("https://allowed.test/").read().decode(), end="")'`,
    ],
    [
      'Node',
      `NODE_EXTRA_CA_CERTS=ca.crt node -e 'fetch("https://allowed.test/").then((r) => r.text()).then((t) => process.stdout.write(t))'`,
    ],
  ])('%s reaches an allowed host without setup', async (_, script) => {
    await using place = await createPlace(caller);
    expect(await place.sh(script)).toEqual({ code: 0, signal: null, stdout: 'hello world\n', stderr: '' });
    expect(place.requests).toHaveLength(1);
  });

  test('a host that no rule allows fails at once, with the reason and a fix', async () => {
    await using place = await createPlace(caller);
    const result = await place.sh(
      'curl -sS -o /dev/null -D - http://evil.test/ | head -1; curl -sS https://evil.test/; echo "exit $?"',
    );
    expect(result.stdout).toContain('403 ags: evil.test:80 is not allowed by the network policy of this sandbox');
    expect(result.stdout).toContain('do not look for a way round');
    expect(result.stdout).toContain('exit 56');
    expect(result.stderr).toContain('ags: Network: refused evil.test');
    expect(result.stderr).toContain('ags allow evil.test');
    expect([place.requests, place.context.asked]).toEqual([[], []]);
  });

  test('ags net test reports from inside which hosts are reachable, and why others are not', async () => {
    await using place = await createPlace(caller);
    const hosts = ['allowed.test', 'allowed.test:80', 'evil.test', 'nothing.wild.test', 'allowed.test:22'];
    const result = await place.machine.ags(['net', 'test', ...hosts, '--json']);
    const found = JSON.parse(result.stdout) as { hosts: { host: string; port: number; verdict: string }[] };
    expect(result.code).toBe(1);
    expect(found.hosts.map(({ host, port, verdict }) => `${host}:${port} ${verdict}`)).toEqual([
      'allowed.test:443 reachable',
      'allowed.test:80 reachable',
      'evil.test:443 refused',
      'nothing.wild.test:443 unreachable',
      'allowed.test:22 refused',
    ]);
    place.context.names.delete('allowed.test');
    const gone = await place.machine.ags(['net', 'test', 'allowed.test:80']);
    expect(gone).toMatchObject({ code: 1 });
    expect(gone.stdout).toContain('allowed.test does not exist');
    expect(await place.machine.ags(['net', 'test', 'allowed.test:443x'])).toMatchObject({ code: 2 });
    expect(place.machine.tasks()).toEqual([]);
  });

  test('A42, A69: without the proxy no host is reachable', async () => {
    await using place = await createPlace(caller);
    const result = await place.sh(
      `unset http_proxy https_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY all_proxy
       curl -sS -m 5 https://evil.test/; echo "name $?"
       curl -sS -m 5 -k https://${ORIGIN}/; echo "address $?"
       curl -sS -m 5 http://1.1.1.1/; echo "public $?"
       perl -MSocket -e 'socket(S, PF_INET, SOCK_DGRAM, 0); print defined(send(S, "x", 0, pack_sockaddr_in(53, inet_aton("1.1.1.1")))) ? "sent" : "udp: $!", "\\n"'`,
    );
    expect(result.stdout.split('\n')).toEqual(['name 6', 'address 35', 'public 7', 'udp: Network is unreachable', '']);
    expect([place.requests, place.context.asked]).toEqual([[], []]);
  });

  test('with --network off only loopback exists', async () => {
    await using place = await createPlace(caller);
    const result = await place.sh(
      'curl -sS https://allowed.test/ 2>&1; env | grep -ci proxy; cat /proc/net/tcp | wc -l',
      '--network',
      'off',
    );
    expect(result.stdout).toBe('curl: (6) Could not resolve host: allowed.test\n0\n1\n');
  });

  test('a grant reaches PostgreSQL on this machine by its name and by loopback, and no other port', async () => {
    using database = startPostgres();
    await using place = await createPlace(caller, `  tcp: ["db=localhost:${database.port}"]\n`);
    const query = 'select 6 * 7 as answer';
    const result = await place.sh(
      `psql -h db -p ${database.port} -U agent -d postgres -Atc '${query}'
       psql 'postgresql://agent@127.0.0.1:${database.port}/postgres' -Atc '${query}'
       perl -MSocket -e 'socket(S, PF_INET, SOCK_STREAM, 0); print connect(S, pack_sockaddr_in(${database.port + 1}, INADDR_LOOPBACK)) ? "open" : "closed: $!", "\\n"'`,
    );
    expect(result).toMatchObject({ code: 0, stdout: '42\n42\nclosed: Connection refused\n' });
  });

  test('a server inside is reached from the user’s loopback, at another port if the wanted one is in use', async () => {
    await using place = await createPlace(caller);
    const blocker = createTcp().listen(0, '127.0.0.1');
    await new Promise((resolve) => blocker.once('listening', resolve));
    const { port } = blocker.address() as { port: number };
    const serve = `node -e 'require("http").createServer((q, r) => r.end("from inside")).listen(4000, "127.0.0.1")'`;
    const child = place.machine.start(['exec', '--publish', `${port}:4000`, '--', 'sh', '-c', serve]);
    let stderr = '';
    child.stderr?.on('data', (chunk: Buffer) => (stderr += chunk.toString('utf8')));
    await expect.poll(() => stderr, { timeout: 20_000 }).toContain('Port 4000 of the sandbox is 127.0.0.1:');
    expect(stderr).toContain(`(${port} is taken)`);
    const chosen = Number(/127\.0\.0\.1:(\d+) here/.exec(stderr)?.[1]);
    await expect
      .poll(
        () =>
          // Node's client may wait forever on a connection that ended while it loaded its parser.
          fetch(`http://127.0.0.1:${chosen}/`, { signal: AbortSignal.timeout(2000) })
            .then((r) => r.text())
            .catch(String),
        { timeout: 20_000 },
      )
      .toBe('from inside');
    child.kill('SIGTERM');
    await new Promise((resolve) => child.on('close', resolve));
    await expect(fetch(`http://127.0.0.1:${chosen}/`)).rejects.toThrow();
    blocker.close();
  });

  test('A71, A154: no program inside can see, stop or replace its gateway', async () => {
    await using place = await createPlace(caller);
    const result = await place.sh(
      `ls /proc | grep -c '^[0-9]'; ls -l /proc/self/fd | wc -l
       perl -MSocket -e 'for (3128, 443, 80) { socket(S, PF_INET, SOCK_STREAM, 0); setsockopt(S, SOL_SOCKET, SO_REUSEADDR, 1); setsockopt(S, SOL_SOCKET, SO_REUSEPORT, 1); print bind(S, pack_sockaddr_in($_, INADDR_LOOPBACK)) ? "bound $_" : "no", "\\n" }'`,
    );
    expect(result.stdout.split('\n').slice(2)).toEqual(['no', 'no', 'no', '']);
  });
});

/** Starts a PostgreSQL cluster that trusts every connection over loopback. */
function startPostgres(): Disposable & { readonly port: number } {
  const root = mkdtempSync('/tmp/ags-pg-');
  const bin = execFileSync('sh', ['-c', 'ls -d /usr/lib/postgresql/*/bin | tail -1'], { encoding: 'utf8' }).trim();
  const owner = process.getuid?.() === 0 ? ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups'] : [];
  if (owner.length > 0) execFileSync('chown', ['65534:65534', root]);
  const run = (...argv: string[]): void => {
    const [file = '', ...args] = [...owner, ...argv];
    execFileSync(file, args, { stdio: 'ignore', cwd: root });
  };
  const port = 20_000 + Math.floor(Math.random() * 10_000);
  run(join(bin, 'initdb'), '-D', join(root, 'data'), '-U', 'agent', '-A', 'trust', '--no-sync');
  run(
    join(bin, 'pg_ctl'),
    '-D',
    join(root, 'data'),
    '-w',
    '-l',
    join(root, 'log'),
    '-o',
    `-p ${port} -c listen_addresses=127.0.0.1 -c unix_socket_directories=${root} -c fsync=off`,
    'start',
  );
  return {
    port,
    [Symbol.dispose]() {
      run(join(bin, 'pg_ctl'), '-D', join(root, 'data'), '-m', 'immediate', 'stop');
      execFileSync('rm', ['-rf', root]);
    },
  };
}
