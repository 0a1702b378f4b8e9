// test/nested-docker/nested-docker.full.test.ts: a task with nested Docker, from the command line: images through the cache, builds, containers,
// ports, and cleanup.
import { readdirSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startImageHub, type ImageHub } from './image-hub.ts';
import { CAN_NEST, createPlace, ENGINE_CALLERS, left, outcomes, runAgs, startAgs, TRY } from './place.ts';

let hub: ImageHub;
beforeAll(async () => {
  if (CAN_NEST) hub = await startImageHub();
});
afterAll(() => hub?.[Symbol.asyncDispose]());

const WORK = `${TRY}
try host echo "$DOCKER_HOST"
try run docker run --rm app:1 id -u
printf 'FROM app:1\\nRUN echo built > /built\\nCMD cat /built\\n' > /tmp/Dockerfile
try build env DOCKER_BUILDKIT=0 docker build --quiet --tag made - < /tmp/Dockerfile
env DOCKER_BUILDKIT=0 docker build --quiet --tag made - < /tmp/Dockerfile > /dev/null 2>&1
try made docker run --rm made
docker run --detach --name web --publish 18080:80 app:1 httpd -f -p 80 -h /www > /dev/null 2>&1
for i in $(seq 100); do curl --silent --fail http://127.0.0.1:18080/ > /dev/null && break; sleep 0.1; done
try port curl --silent http://127.0.0.1:18080/
docker rm --force web > /dev/null 2>&1
for i in $(seq 100); do curl --silent http://127.0.0.1:18080/ > /dev/null || break; sleep 0.1; done
try closed curl --silent http://127.0.0.1:18080/
try other docker pull ghcr.io/owner/app
for where in $PWD /tmp/new; do try "show $where" sh -c "docker run --rm --volume $where:/app app:1 ls /app 2>&1 | grep -o 'mkdir .* file system'"; done
try reaper echo "$TESTCONTAINERS_RYUK_DISABLED"
`;

/** attacks.full.test.ts covers native sandboxes of both callers. */
const CASES = [
  { caller: 'root', backend: 'native' },
  { caller: 'root', backend: 'docker' },
  { caller: 'user', backend: 'docker' },
] as const;

describe.runIf(CAN_NEST && ENGINE_CALLERS.length > 0)('nested Docker', () => {
  test.each(CASES)('builds and runs images as $caller in a $backend sandbox', async ({ caller, backend }) => {
    using machine = createPlace(caller, hub);
    const { code, stdout, stderr } = await runAgs(machine, ['exec', '--backend', backend, '--', 'sh', '-c', WORK]);
    expect({ code, stderr: stderr.replaceAll(/^ags: Network: refused .*\n/gm, ''), ...outcomes(stdout) }).toEqual({
      code: 0,
      stderr: '',
      host: '0 tcp://127.0.0.1:2375',
      run: '0 0',
      build: expect.stringMatching(/^1 /) as unknown,
      made: '0 built',
      port: '0 served inside',
      closed: expect.stringMatching(/^7 /) as unknown,
      other: expect.stringContaining('Images from ghcr.io are not allowed in this sandbox') as unknown,
      // Docker must not mount an empty directory instead.
      [`show ${machine.project}`]: expect.stringMatching(/^0 mkdir .*: read-only file system$/) as unknown,
      'show /tmp/new': '0 mkdir /tmp/new: read-only file system',
      reaper: '0 true',
    });
    expect(readdirSync(machine.stateDir).filter((name) => name.startsWith('.inner-'))).toEqual([]);
  });

  test('fetches an image once for two tasks that pull it at the same time', async () => {
    using machine = createPlace('root', hub);
    hub.blobsFetched.length = 0;
    const pull = () => runAgs(machine, ['exec', '--', 'sh', '-c', 'docker pull --quiet app:1']);
    const both = await Promise.all([pull(), pull()]);
    expect(both.map(({ code, stdout }) => `${code} ${stdout}`)).toEqual(Array(2).fill('0 docker.io/library/app:1\n'));
    expect(hub.blobsFetched.length).toBe(2);
    expect(new Set(hub.blobsFetched).size).toBe(2);
  });

  test('starts with the first request, and is removed, with its containers and data, when its ags is killed', async () => {
    using machine = createPlace('root', hub);
    const child = startAgs(machine, ['exec', '--', 'sh', '-c', 'echo up; read go; docker run -d app:1 sleep 600; cat']);
    const heard = () => new Promise<void>((resolve) => child.stdout?.once('data', () => resolve()));
    await heard();
    const [task = ''] = machine.tasks();
    expect(left(task)).toEqual([]);
    const running = heard();
    child.stdin?.write('go\n');
    await running;
    expect(left(task).length).toBe(2);
    child.kill('SIGKILL');
    for (const end = Date.now() + 30_000; left(task).length > 0 && Date.now() < end;) await sleep(100);
    expect(left(task)).toEqual([]);
    const cleanup = await runAgs(machine, ['cleanup', '--yes']);
    expect(cleanup).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('sockets of nested Docker') as unknown,
    });
    expect(readdirSync(machine.stateDir).filter((name) => name.startsWith('.inner-'))).toEqual([]);
  });

  test('is in the plan, with every protection', async () => {
    using machine = createPlace('root', hub);
    const { stdout } = await runAgs(machine, ['plan', '--json', '--', 'true']);
    const { docker, beside, label, spec } = JSON.parse(stdout) as {
      docker: string;
      label: string;
      beside: { what: string; argv: string[] }[];
      spec: { env: Record<string, string> };
    };
    expect(docker).toMatch(/^a private Docker daemon, rootless: .* no privileges on this machine, .*docker\.io/);
    expect(label).toContain('docker inside: rootless, seccomp, gateway');
    expect(spec.env['DOCKER_HOST']).toBe('tcp://127.0.0.1:2375');
    const argv = beside.find(({ what }) => what.startsWith('Nested Docker'))?.argv ?? [];
    const after = (name: string): string[] => argv.flatMap((word, at) => (word === name ? [argv[at + 1] ?? ''] : []));
    expect({ add: after('--cap-add'), drop: after('--cap-drop'), network: after('--network') }).toEqual({
      add: ['SETUID', 'SETGID'],
      drop: ['ALL'],
      network: ['none'],
    });
    expect(argv).toContain('--read-only');
    expect(argv.filter((word) => word.startsWith('type=bind') && !word.endsWith('readonly'))).toEqual([]);
    expect(argv.join(' ')).not.toContain('docker.sock');
    expect(argv).not.toContain('--privileged');
  });
});

if (!CAN_NEST) test.skip('Docker does not answer here, or docker-registry is missing', () => undefined);
