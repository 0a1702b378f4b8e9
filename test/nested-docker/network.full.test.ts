// test/nested-docker/network.full.test.ts: containers of nested Docker reach the hosts that the task may reach, without any setup, and nothing
// else. One sandbox makes all attempts; each has its own test.
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { networkInterfaces } from 'node:os';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createWorld, ORIGIN, type HostContext } from '../gateway/fixture.ts';
import type { Machine } from '../harness.ts';
import { startImageHub, type ImageHub } from './image-hub.ts';
import { CAN_NEST, createPlace, ENGINE_CALLERS, outcomes, runAgs, startAgs, TRY } from './place.ts';

const SECRET = 's3cr3t-value-of-the-user';
const inside = (flags: string, attempts: string): string =>
  `docker run --rm --interactive ${flags} app:1 sh -s <<'ATTEMPTS'\n${TRY}${attempts}ATTEMPTS\n`;

/** This machine's address on its network. */
const ADDRESS =
  Object.values(networkInterfaces())
    .flatMap((all) => all ?? [])
    .find(({ internal, family }) => !internal && family === 'IPv4')?.address ?? '127.0.0.1';

const script = (port: number): string => `${TRY}
docker pull --quiet app:1 > /dev/null
docker network create own > /dev/null
docker run --detach --name web --network own --publish 80:80 app:1 httpd -f -p 80 -h /www > /dev/null
${inside(
  '',
  `try plain curl -sS http://allowed.test/
try tls curl -sSk https://allowed.test/
try proxy curl -sSk -x http://100.64.0.1:3128 https://allowed.test/
try refused curl -sS -x http://100.64.0.1:3128 https://evil.test/
try name curl -sS http://evil.test/
try host curl -sS -o /dev/null -w '%{http_code}' -H 'Host: evil.test' http://allowed.test/
try greeting sh -c 'curl -sSk --connect-to evil.test:443:allowed.test:443 https://evil.test/'
try otherport curl -sS -m 5 http://allowed.test:8080/
try loopback curl -sS -o /dev/null -w '%{http_code}' -x http://100.64.0.1:3128 http://127.0.0.1:${port}/
try machine curl -sS -o /dev/null -w '%{http_code}' -x http://100.64.0.1:3128 http://${ADDRESS}:${port}/
try direct curl -sS -m 5 http://${ADDRESS}:${port}/
try internet curl -sS -m 5 http://8.8.8.8/
try engine curl -sS -m 5 http://172.17.0.1:2375/_ping
try egress curl -sS -m 5 http://100.64.0.1:2375/_ping
try hooks curl -sS -m 5 http://100.64.0.1:3130/
try endpoint curl -sS -m 5 http://100.64.0.1:3129/
try cache curl -sS -m 5 http://172.17.0.1:5000/v2/
try neighbour curl -sS -m 5 http://100.96.0.2:18099/
try beyond curl -sS -m 5 http://100.96.0.1:18099/
`,
)}${inside('--network own', `try peer curl -sS http://web/\ntry own curl -sS http://allowed.test/\n`)}${inside(
  '--network host --cap-add NET_ADMIN',
  `ip route add default via 100.96.0.1
try detour curl -sS -m 3 http://${ADDRESS}:${port}/
try before curl -sS http://late.test/
for i in $(busybox seq 300); do curl -sS http://late.test/ > /dev/null 2>&1 && break; sleep 0.1; done
try after curl -sS http://late.test/
`,
)}printf 'FROM app:1\\nRUN curl -sS http://allowed.test/ > /got\\nCMD cat /got\\n' > /tmp/Dockerfile
env DOCKER_BUILDKIT=0 docker build --quiet --tag made - < /tmp/Dockerfile > /dev/null 2>&1
try built docker run --rm made
try secret docker run --rm -e API_TOKEN -v /run/ags/ca-bundle.pem:/ca.pem:ro app:1 sh -c 'curl -sS --cacert /ca.pem -H "Authorization: Bearer $API_TOKEN" https://api.test/'
`;

let hub: ImageHub;
beforeAll(async () => {
  if (CAN_NEST) hub = await startImageHub();
});
afterAll(() => hub?.[Symbol.asyncDispose]());

describe.runIf(CAN_NEST).each(ENGINE_CALLERS)('as %s, a container of nested Docker', (caller) => {
  let context: HostContext;
  let machine: Machine;
  let server: Server;
  let neighbour: ReturnType<typeof startAgs>;
  let said: Record<string, string>;
  let log: string;
  const visitors: string[] = [];
  const requests: string[] = [];

  beforeAll(async () => {
    context = await createWorld();
    const respond = (socket: NodeJS.ReadWriteStream & { end(text: string): unknown }): void => {
      let text = '';
      socket.on('data', (chunk: Buffer) => {
        text += chunk.toString('latin1');
        if (!text.includes('\r\n\r\n')) return;
        requests.push(text);
        const body = `hello ${/^authorization: (.*)\r$/im.exec(text)?.[1] ?? 'world'}\n`;
        socket.end(`HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\nConnection: close\r\n\r\n${body}`);
      });
    };
    await context.tls(443, respond);
    for (const port of [80, 8080]) await context.tcp(port, respond);
    for (const name of ['evil.test', 'late.test', 'api.test']) context.names.set(name, [ORIGIN]);
    machine = createPlace(
      caller,
      hub,
      `network:\n  dns: ["${context.dns}"]\n  addresses: ["${ORIGIN}/32"]\n  allow: [allowed.test, "http://allowed.test"]
secrets:\n  - { name: api, host: api.test, header: authorization, env: API_TOKEN, from: { env: REAL_TOKEN } }\n`,
    );
    const ca = join(machine.home, '.ca.pem');
    writeFileSync(ca, context.authority.certificatePem);
    const env = { REAL_TOKEN: SECRET, NODE_EXTRA_CA_CERTS: ca };
    server = createServer((request, response) => {
      visitors.push(request.url ?? '');
      response.end('a service of this machine\n');
    });
    await new Promise<void>((resolve) => server.listen(0, '0.0.0.0', resolve));
    const serve = 'docker run -d -p 18099:80 app:1 httpd -f -p 80 -h /www; cat';
    neighbour = startAgs(machine, ['exec', '--', 'sh', '-c', serve], env);
    await new Promise((resolve) => neighbour.stdout?.once('data', resolve));
    const allowing: Promise<unknown>[] = [];
    const { stdout } = await runAgs(
      machine,
      ['exec', '--', 'sh', '-c', script((server.address() as AddressInfo).port)],
      {
        env,
        onOutput(text) {
          if (text.includes('before = ') && allowing.length === 0)
            allowing.push(runAgs(machine, ['allow', 'http://late.test']));
        },
      },
    );
    await Promise.all(allowing);
    said = outcomes(stdout);
    log = (await runAgs(machine, ['net', 'log'])).stdout;
  }, 180_000);
  afterAll(async () => {
    neighbour?.kill('SIGKILL');
    server?.close();
    machine?.[Symbol.dispose]();
    await context?.[Symbol.asyncDispose]();
  });

  test.each([
    ['reaches an allowed host without proxy settings', 'plain', /^0 hello world$/],
    ['reaches it over TLS', 'tls', /^0 hello world$/],
    ['reaches it by the proxy', 'proxy', /^0 hello world$/],
    ['reaches it from a user-defined network', 'own', /^0 hello world$/],
    ['reaches it in a step of a build', 'built', /^0 hello world$/],
    ['reaches other containers by name', 'peer', /^0 served inside$/],
    ['does not reach a host before it is allowed', 'before', /^6 /],
    ['reaches the host once it is allowed', 'after', /^0 hello world$/],
    ['sends a secret that it never sees', 'secret', /^0 hello Bearer \*+$/],
  ])('%s', (_what, name, outcome) => {
    expect(said[name]).toMatch(outcome);
  });

  test.each([
    ['reach a host that no rule covers', 'refused', /^56 .*403/],
    ['resolve the name of a host that no rule covers', 'name', /^6 /],
    ['reach it with the Host header of a request to an allowed host', 'host', /^0 421$/],
    ['reach it with the TLS server name of a connection to an allowed host', 'greeting', /^35 /],
    ['reach another port of an allowed host', 'otherport', /^7 /],
    ['reach the loopback of this machine through the gateway', 'loopback', /^0 403$/],
    ['reach the address of this machine through the gateway', 'machine', /^0 403$/],
    ['reach this machine directly', 'direct', /^7 /],
    ['reach the internet directly', 'internet', /^7 /],
    ['reach this machine with its own route', 'detour', /^(7|28) /],
    ['reach the nested daemon', 'engine', /^7 /],
    ['reach the nested daemon in the egress network', 'egress', /^7 /],
    ['reach the listener of hooks', 'hooks', /^7 /],
    ['reach endpoints of secrets', 'endpoint', /^7 /],
    ['reach the image cache', 'cache', /^7 /],
    ['reach the nested Docker of another task', 'neighbour', /^7 /],
    ['reach another task beyond the egress network', 'beyond', /^7 /],
  ])('cannot %s', (_what, name, outcome) => {
    expect(said[name]).toMatch(outcome);
  });

  test('has its connections in the network log, which holds no secret', () => {
    expect(log).toMatch(/denied .*evil\.test:443 .*a container/);
    expect(log).toMatch(/allowed .*allowed\.test:443 .*a container/);
    expect(visitors).toEqual([]);
    expect(requests.filter((text) => text.includes(SECRET))).toHaveLength(1);
    expect(JSON.stringify(said) + log).not.toContain(SECRET);
  });
});

describe.runIf(CAN_NEST && ENGINE_CALLERS.length > 0)('without a network', () => {
  test('containers have no network either', async () => {
    using machine = createPlace('root', hub);
    const { stdout } = await runAgs(machine, [
      'exec',
      '--network',
      'off',
      '--',
      'sh',
      '-c',
      `${TRY}try interfaces docker run --rm --network host app:1 sh -c "ip -o link | grep -c -e ' lo:' -e ' docker0:'; ip -o link | grep -c ."
try proxy docker run --rm app:1 curl -sS -m 5 -x http://100.64.0.1:3128 http://allowed.test/
`,
    ]);
    expect(outcomes(stdout)).toEqual({
      interfaces: '0 2',
      proxy: expect.stringMatching(/^7 /) as unknown,
    });
  });
});

if (!CAN_NEST) test.skip('Docker does not answer here, or docker-registry is missing', () => undefined);
