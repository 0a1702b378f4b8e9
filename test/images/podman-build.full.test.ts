// test/images/podman-build.full.test.ts: builds with Podman, as an ordinary user and as root: the network of steps, refusals, cleanup.
import { copyFileSync, readdirSync, writeFileSync } from 'node:fs';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { processesWith, until } from '../attacks/host-view.ts';
import { createWorld, ORIGIN, type HostContext } from '../gateway/fixture.ts';
import { CALLERS, createMachine, giveTo, type Machine } from '../harness.ts';
import { createPodmanUser, HAS_PODMAN, podman, type PodmanUser } from '../sandbox/podman-user.ts';

const PODMAN = ['--backend', 'podman'];
const running = (words: string): boolean => processesWith(words).length > 0;
// Every test starts with the same steps, so that they are built once.
const START = ['FROM scratch', 'COPY busybox /bin/busybox', 'COPY busybox /bin/sh'];

describe.runIf(HAS_PODMAN).each(CALLERS.map((caller) => ({ caller })))('Podman, as $caller,', ({ caller }) => {
  let context: HostContext;
  let user: PodmanUser;
  let machine: Machine;
  let requests = 0;
  beforeAll(async () => {
    user = createPodmanUser('ags-podbuild');
    context = await createWorld();
    await context.tcp(80, (socket) => {
      requests += 1;
      socket.once('data', () => socket.end('HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhello\n'));
    });
    context.names.set('refused.test', [ORIGIN]);
    machine = createMachine(caller, { user });
    copyFileSync('/bin/busybox', join(machine.project, 'busybox'));
    machine.write('part.txt', 'first\n');
    machine.write(
      '../../.config/ags/config.yaml',
      `network:\n  dns: ["${context.dns}"]\n  addresses: ["${ORIGIN}/32"]\n`,
    );
  });
  afterAll(async () => {
    for (const id of images()) podman(machine, 'image', 'rm', '--force', id);
    machine[Symbol.dispose]();
    user[Symbol.dispose]();
    await context[Symbol.asyncDispose]();
  });

  const images = (): string[] =>
    podman(machine, 'images', '--quiet', '--filter', `label=ags.project=${machine.project}`)
      .split('\n')
      .filter((id) => id !== '');
  /** The working containers of builds, which have no label. */
  const working = (): string =>
    podman(machine, 'ps', '--all', '--external', '--format', '{{.Names}} {{.Command}}')
      .split('\n')
      .filter((line) => line.endsWith('buildah'))
      .join('\n');
  const describeImage = async (lines: readonly string[], network = ''): Promise<void> => {
    machine.write('ags.yaml', `dockerfile: .ags/Dockerfile\n${network}`);
    machine.write('.ags/Dockerfile', `${lines.join('\n')}\n`);
    giveTo(machine.project, machine.uid);
    await machine.ags(['trust', '--yes']);
  };
  const build = (): ReturnType<Machine['ags']> => machine.ags(['image', 'build', ...PODMAN]);
  /** The output of a script over the image, or the error of ags. */
  const inside = async (script: string): Promise<string> => {
    const words = script.replaceAll(/\b(cat|env|true)\b/g, '/bin/busybox $1');
    const run = await machine.ags(['exec', ...PODMAN, '--network', 'off', '--', '/bin/sh', '-c', words]);
    return run.stdout + run.stderr;
  };

  test('builds an image whose steps reach only allowed hosts, through the gateway', async () => {
    const elsewhere = Object.values(networkInterfaces())
      .flatMap((found) => found ?? [])
      .find(({ internal, family }) => !internal && family === 'IPv4')?.address;
    let strangers = 0;
    const port = await context.tcp(0, (socket) => socket.end(`${(strangers += 1)}`), '0.0.0.0');
    const get = (address: string): string => `busybox wget -q -O - http://${address}/ || echo not ${address}`;
    const direct = [`127.0.0.1:${port}`, `${ORIGIN}:80`, ...(elsewhere === undefined ? [] : [`${elsewhere}:${port}`])];
    const looks = [
      'busybox ls /sys/class/net',
      'busybox grep -c : /proc/net/dev',
      get('allowed.test'),
      get('refused.test'),
      `unset http_proxy HTTP_PROXY; ${direct.map(get).join('; ')}`,
    ];
    await describeImage(
      [
        ...START,
        'RUN busybox env > /environment',
        `RUN { ${looks.join('; ')}; } > /seen 2> /errors; busybox cat /etc/hosts > /names`,
        'COPY part.txt /part.txt',
      ],
      'network: { allow: ["http://allowed.test"] }\n',
    );
    const built = await build();
    expect([built.code, built.stderr]).toEqual([
      0,
      expect.stringMatching(/1\/6 {2}FROM scratch\n(.*\n)*.*6\/6 {2}COPY part.txt .*\n$/),
    ]);
    const [seen, errors, told, left] = (
      await inside('for file in seen errors environment; do cat /$file; echo ==; done; env')
    ).split('==\n');
    expect(seen).toBe(`lo\n1\nhello\n${['refused.test', ...direct].map((at) => `not ${at}\n`).join('')}`);
    expect(errors).toMatch(/403 ags: refused\.test:80 is not allowed[^]*\(127\.0\.0\.1\): Connection refused/);
    expect([requests, strangers]).toEqual([1, 0]);
    expect(told).toContain('http_proxy=http://127.0.0.1:3128');
    const [id = ''] = images();
    // Neither the image nor its history keeps the variables of the proxy.
    expect(left + podman(machine, 'image', 'inspect', id)).not.toContain('127.0.0.1:3128');

    machine.write('part.txt', 'second\n');
    expect(await inside('true')).toMatch(/out of date/);
    await build();
    expect(await inside('cat /part.txt /names')).toBe('second\n127.0.0.1\tlocalhost\n::1\tlocalhost\n');
    expect((await build()).stdout).toMatch(/is already up to date/);
    await machine.ags(['cleanup', '--yes']);
    expect([images().length, images().includes(id)]).toEqual([1, false]);
  }, 120_000);

  test('stops the build when its ags is killed, and leaves nothing behind', async () => {
    const mark = `9${process.pid}${machine.uid}`;
    await describeImage([...START, `RUN busybox sleep ${mark}`, 'RUN busybox touch /late']);
    const before = working();
    const child = machine.start(['image', 'build', ...PODMAN]);
    await until(() => running(`sleep\0${mark}`), 40_000);
    expect(running(mark)).toBe(true);
    child.kill('SIGKILL');
    await until(() => !running(mark) && working() === before, 40_000);
    expect([running(mark), working()]).toEqual([false, before]);
    // The next build removes its files in the cache.
    await describeImage([...START]);
    expect((await build()).code).toBe(0);
    expect(readdirSync(join(machine.home, '.cache/ags')).filter((name) => name.startsWith('.apart-'))).toEqual([]);
  }, 120_000);

  if (caller !== 'user') return;
  test('shows the denied hosts and the output of a failed step, and leaves nothing behind', async () => {
    const step = 'RUN busybox wget -q -O - http://allowed.test/ || { busybox printf "\\033[2Jtoo bad\\n"; exit 3; }';
    const before = requests;
    await describeImage([...START, step], 'network: { allow: ["http://allowed.test"], deny: ["allowed.test"] }\n');
    const { code, stderr } = await build();
    expect([code, stderr]).toEqual([
      1,
      expect.stringMatching(/Denied connections: allowed\.test\.\n[^\u001b]*too bad/),
    ]);
    expect([requests, working()]).toEqual([before, '']);
  }, 120_000);

  test('refuses lines that ask the engine for more than steps may have', async () => {
    const cases: [string, RegExp][] = [
      [`ADD http://${ORIGIN}/x /x`, /past your rules: ADD /],
      ['RUN --network=host true', /not allow in a build: RUN --network=host true\n.*must have no options/],
      [`FROM dir:${machine.project}`, /not allow in a build: dir:/],
    ];
    for (const [line, words] of cases) {
      await describeImage(['FROM scratch', line]);
      const { code, stderr } = await build();
      expect([line, code, stderr]).toEqual([line, 1, expect.stringMatching(words)]);
    }
  }, 120_000);

  test('fetches nothing for a base image whose ONBUILD line makes the engine fetch', async () => {
    const before = requests;
    const base = `ags-test-${process.pid}:evil`;
    const evil = join(machine.home, 'evil');
    writeFileSync(evil, `FROM scratch\nONBUILD ADD http://${ORIGIN}/x /x\n`);
    podman(machine, 'build', '--format', 'docker', '--tag', base, '--file', evil, machine.project);
    await describeImage([`FROM ${base}`]);
    const { code, stderr } = await build();
    expect([code, stderr]).toEqual([1, expect.stringMatching(/could not be built[^]*connect/)]);
    expect(requests).toBe(before);
  }, 120_000);
});

if (!HAS_PODMAN) test.skip('Podman is not installed here', () => undefined);
