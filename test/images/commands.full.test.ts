// test/images/commands.full.test.ts: images on the command line: choice, pinning, build, list, removal, and refusals.
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { machineMark, userMark } from '../../src/sandbox/engine/owner.ts';
import { ENGINE } from '../conformance/docker-backend.ts';
import { HAS_ENGINE } from '../conformance/engine.ts';
import { createMachine, type Machine } from '../harness.ts';
import { engine, tinyImage } from './tiny-image.ts';

// Not /var/tmp: inside it is /tmp, so paths would have two names.
const PLACE = '/var/lib';
// Shared by all tests, because ags probes a machine once.
let machine: Machine;
const start = (files: Record<string, string>): void => {
  for (const [path, content] of Object.entries(files)) machine.write(path, content);
};

const idOf = (name: string): string => engine('image', 'inspect', '--format', '{{.Id}}', name);
const isThere = (name: string): boolean =>
  spawnSync(ENGINE.program, ['image', 'inspect', name], { env: ENGINE.env }).status === 0;

describe.runIf(HAS_ENGINE && process.getuid?.() === 0)('ags', () => {
  beforeAll(() => {
    machine = createMachine('root', { disk: PLACE, files: { a: 'one\n' } });
  });
  afterAll(() => machine[Symbol.dispose]());

  test('runs a command over an image, records its ID in the task, and shows the changes', async () => {
    using image = tinyImage({ says: ['ENV PATH=/bin GREETING=hello'] });
    const run = await machine.ags([
      'exec',
      '--image',
      image.name,
      '--',
      'sh',
      '-c',
      'echo $GREETING $SHELL; echo two > a',
    ]);
    expect([run.code, run.stdout]).toEqual([0, 'hello /bin/sh\n']);
    const [task = ''] = machine.tasks();
    const file = JSON.parse(readFileSync(join(machine.stateDir, 'tasks', task, 'run.json'), 'utf8')) as object;
    expect(file).toMatchObject({ backend: 'docker', image: { reference: image.name, id: idOf(image.name) } });
    expect((await machine.ags(['show', task])).stdout.replaceAll(/\s+/g, '')).toContain(
      `${image.name}(${idOf(image.name)})`,
    );
    expect((await machine.ags(['diff', task])).stdout).toContain('+two');
  });

  test('runs an agent in an image without Perl, with a setup layer separate from that of native tasks', async () => {
    using image = tinyImage({ says: ['ENV PATH=/bin'] });
    machine.write('ags.yaml', 'setup: ["if [ -e /usr ]; then echo machine; else echo image; fi > where.txt"]\n');
    machine.write('.gitignore', 'where.txt\n');
    machine.git('add', '-A');
    machine.git('commit', '-qm', 'with setup');
    const agent = 'sh -c "cat where.txt > seen.txt"';
    const began = [
      await machine.ags(['start', 'natively', 'look', '--agent', agent, '--backend', 'native']),
      await machine.ags(['start', 'over-image', 'look', '--agent', agent, '--image', image.name]),
    ];
    expect(began.map(({ code }) => code)).toEqual([0, 0]);
    const seen = ['natively', 'over-image'].map((task) => machine.git('show', `ags/${task}:seen.txt`).trim());
    expect(seen).toEqual(['machine', 'image']);
    machine.write('ags.yaml', '{}\n');
  }, 120_000);

  test('shows the image in the plan, and mounts no programs of this machine over it', async () => {
    using image = tinyImage();
    const { stdout } = await machine.ags([
      'plan',
      '--image',
      image.name,
      '--json',
      '--limit',
      'cpus=0.5',
      '--runtime',
      'runc',
    ]);
    const { spec, argv, label } = JSON.parse(stdout) as {
      spec: { root: { id: string }; mounts: { kind: string; from?: string; to: string }[] };
      argv: string[];
      label: string;
    };
    expect(spec.root.id).toBe(idOf(image.name));
    expect(argv).toContain(spec.root.id);
    const pairs = argv.map((word, at) => `${word} ${argv[at + 1]}`);
    for (const pair of ['--pull never', '--cpus 0.5', '--runtime runc']) expect(pairs).toContain(pair);
    expect(label).toContain(`image ${spec.root.id.slice(7, 19)}`);
    const shown = spec.mounts.flatMap(({ from }) => from ?? []);
    expect(shown.filter((path) => /^\/(usr|bin|lib|etc|opt)/.test(path))).toEqual([]);
  });

  test('refuses an image with the native backend, a missing image, and an unknown runtime', async () => {
    const before = machine.tasks();
    const cases: [string[], number, RegExp][] = [
      [['--backend', 'native', '--image', 'debian:12'], 9, /Images need a container.*\n.*--backend docker/],
      [
        ['--image', 'ags-test-none:1'],
        3,
        /does not have the image ags-test-none:1\.\n.*ags image pull ags-test-none:1/,
      ],
      [['--image', '--privileged'], 2, /--image/],
      [['--image', '-v'], 2, /--image/],
      [['--backend', 'docker', '--runtime', 'ags-none'], 9, /no runtime called ags-none; it has .*runc/],
      [['--runtime', 'runc'], 9, /needs a container/],
    ];
    for (const [flags, code, words] of cases) {
      const run = await machine.ags(['exec', ...flags, '--', 'true']);
      expect([flags, run.code, run.stderr]).toEqual([flags, code, expect.stringMatching(words)]);
    }
    expect(machine.tasks()).toEqual(before);
  });

  test("builds a project's Dockerfile through the gateway, once, and again when one of its files changes", async () => {
    using base = tinyImage({ says: ['ENV PATH=/bin'] });
    start({
      'ags.yaml': 'dockerfile: .ags/Dockerfile\n',
      '.ags/Dockerfile': `FROM ${base.name}\nCOPY part.txt .env* /\nRUN wget -q -O /fetched http://refused.example/ || echo refused > /fetched; env > /environment; ls /sys/class/net > /interfaces\n`,
      'part.txt': 'first\n',
      '.env': 'TOKEN=secret\n',
    });
    const at = machine;
    // Docker's client would pass these variables to every step.
    const password = 'a-password-of-the-user';
    const proxies = { default: { httpProxy: `http://${password}:1`, noProxy: password, allProxy: password } };
    mkdirSync(join(at.home, '.docker'));
    writeFileSync(join(at.home, '.docker/config.json'), JSON.stringify({ proxies }));
    const untrusted = await at.ags(['image', 'build']);
    expect([untrusted.code, untrusted.stderr]).toEqual([
      2,
      expect.stringMatching(/over what \.ags\/Dockerfile builds\n.*ags trust/),
    ]);
    await at.ags(['trust', '--yes']);
    const early = await at.ags(['exec', '--', 'true']);
    expect([early.code, early.stderr]).toEqual([
      3,
      expect.stringMatching(/not built, or out of date\.\n.*ags image build/),
    ]);
    const built = await at.ags(['image', 'build']);
    expect([built.code, built.stderr]).toEqual([
      0,
      expect.stringMatching(/1\/3 {2}FROM .*\n.*2\/3 {2}COPY .*\n.*3\/3 {2}RUN /),
    ]);
    /** The images of the project, the newest first. */
    const listed = async (): Promise<string[]> => {
      const { images } = JSON.parse((await at.ags(['image', 'list', '--json'])).stdout) as {
        images: { reference: string; project: string | null }[];
      };
      return images.flatMap(({ project, reference }) => (project === at.project ? [reference] : []));
    };
    try {
      const [older = '', ...others] = await listed();
      expect([isThere(older), others]).toEqual([true, []]);
      const look = 'cat /part.txt /fetched /interfaces; ls /.env 2>&1; cat /environment';
      const { stdout } = await at.ags(['exec', '--network', 'off', '--', 'sh', '-c', look]);
      expect(stdout).toMatch(/^first\nrefused\nlo\nls: \/\.env: No such file or directory\n/);
      expect(stdout).toContain('http_proxy=http://127.0.0.1:3128');
      expect(stdout).not.toContain(password);
      // The image keeps no variable of the proxy.
      expect((await at.ags(['exec', '--network', 'off', '--', 'env'])).stdout).not.toContain('3128');
      expect((await at.ags(['image', 'build'])).stdout).toMatch(/is already up to date/);
      at.write('part.txt', 'second\n');
      expect((await at.ags(['exec', '--', 'true'])).code).toBe(3);
      await at.ags(['image', 'build']);
      expect((await at.ags(['exec', '--network', 'off', '--', 'cat', '/part.txt'])).stdout).toBe('second\n');
      // Any other cleanup of root may have removed the older image already.
      const [newest = '', ...replaced] = await listed();
      expect([[], [older]]).toContainEqual(replaced);
      // An image built on one of ags inherits its labels, but has another name.
      using derived = tinyImage({ says: [`LABEL ags.image=project ags.maker=${userMark()} ags.project=/nowhere`] });
      // This one has no name.
      const container = engine('create', newest, 'x').trim();
      const nameless = engine('commit', '--change', 'LABEL ags.project=/nowhere', container).trim();
      engine('rm', container);
      const cleanup = await at.ags(['cleanup', '--yes']);
      expect(idOf(derived.name)).toMatch(/^sha256:/);
      expect(idOf(nameless)).toBe(nameless);
      engine('image', 'rm', nameless);
      expect([isThere(older), isThere(newest)]).toEqual([false, true]);
      expect(cleanup.stdout).not.toContain(newest);
      // An image of ags that has lost its name is removed.
      const lost = idOf(newest);
      expect((await at.ags(['image', 'build', '--no-cache'])).code).toBe(0);
      await at.ags(['cleanup', '--yes']);
      expect([isThere(lost), isThere(newest)]).toEqual([false, true]);
      const foreign = await at.ags(['image', 'rm', base.name]);
      expect([foreign.code, foreign.stderr]).toEqual([2, expect.stringMatching(/was not built by ags/)]);
      expect((await at.ags(['image', 'rm', newest])).code).toBe(0);
    } finally {
      const left = engine('image', 'ls', '--quiet', '--filter', `label=ags.project=${at.project}`).split('\n');
      for (const id of left.filter((one) => one !== '')) engine('image', 'rm', '--force', id);
    }
    expect(readdirSync(join(at.home, '.cache/ags')).filter((name) => /^(build|\.apart)-/.test(name))).toEqual([]);
  }, 120_000);

  test('cleanup keeps images of another user or another machine on the same engine, even of missing projects', async () => {
    start({});
    const makers = ['0123456789abcdef.0', `${machineMark()}.42424`, userMark()];
    const names = makers.map((_, at) => `ags-project:test-${process.pid}-${at}`);
    makers.forEach((maker, at) => {
      const label = `LABEL ags.image=project ags.user=0 ags.maker=${maker} ags.project=/nowhere`;
      // An empty tar archive.
      const input = Buffer.alloc(10_240);
      execFileSync(ENGINE.program, ['import', '--change', label, '-', names[at] ?? ''], { env: ENGINE.env, input });
    });
    try {
      const { stdout } = await machine.ags(['cleanup', '--yes']);
      // Any other cleanup of root may have removed the last image already.
      expect(names.slice(0, 2).map((name) => stdout.includes(name))).toEqual([false, false]);
      const there = engine('image', 'ls', '--format', '{{.Repository}}:{{.Tag}}').split('\n');
      expect(names.map((name) => there.includes(name))).toEqual([true, true, false]);
    } finally {
      for (const name of names) spawnSync(ENGINE.program, ['image', 'rm', '--force', name], { env: ENGINE.env });
    }
  });

  test('a build refuses lines, its own or of an image, that make the engine fetch from this machine or past the rules', async () => {
    let asked = 0;
    const server = createServer((_request, response) => response.end(`secret ${(asked += 1)}`));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const line = `ADD http://127.0.0.1:${(server.address() as AddressInfo).port}/x /x`;
    using plain = tinyImage();
    using evil = tinyImage({ says: [`ONBUILD ${line}`] });
    try {
      // In the last one, the escape directive comes too late, so a builder joins lines 3 and 4, and line 5 names another image.
      const shadowed = `RUN true \\\nFROM ${plain.name} AS ${evil.name}\nFROM ${evil.name}\n`;
      for (const text of [
        `FROM ${plain.name}\n${line}\n`,
        `FROM ${evil.name}\n`,
        `FROM ${plain.name}\n${line.replace(/ \/x$/, ' --x')}\n`,
        `FROM ${plain.name}\n# escape=\`\n${shadowed}`,
      ]) {
        start({ 'ags.yaml': 'dockerfile: .ags/Dockerfile\n', '.ags/Dockerfile': text });
        await machine.ags(['trust', '--yes']);
        const { code, stderr } = await machine.ags(['image', 'build']);
        const words = `past your rules: ${text.includes('--x') ? line.replace(/ \/x$/, ' --x') : line}\n`;
        expect([asked, code, stderr]).toEqual([0, 1, expect.stringContaining(words)]);
      }
    } finally {
      server.close();
      const left = engine('image', 'ls', '--quiet', '--filter', `label=ags.project=${machine.project}`).split('\n');
      for (const id of left.filter((one) => one !== '')) engine('image', 'rm', '--force', id);
    }
  }, 120_000);

  test('a failed step of a build shows its output and denied hosts, and leaves nothing running', async () => {
    using base = tinyImage({ says: ['ENV PATH=/bin'] });
    start({
      // The denied hosts of a project apply to its builds.
      'ags.yaml': 'image: devcontainer\nnetwork: { allow: ["denied.example:80"], deny: ["denied.example"] }\n',
      '.devcontainer/devcontainer.json':
        '{\n  // comments are allowed\n  "build": { "dockerfile": "Dockerfile", "context": "..", },\n}\n',
      '.devcontainer/Dockerfile': `FROM ${base.name}\nRUN wget -q -O - http://refused.example/ || wget -q -O - http://denied.example/ || { printf "\\033[2Jtoo bad\\n"; exit 3; }\n`,
    });
    await machine.ags(['trust', '--yes']);
    const { code, stderr } = await machine.ags(['image', 'build']);
    expect(code).toBe(1);
    expect(stderr).toMatch(/could not be built\. Denied connections: refused\.example, denied\.example\./);
    expect(stderr).toMatch(/too bad/);
    expect(stderr).not.toContain('\u001b');
    expect(
      engine('ps', '--all', '--quiet', '--filter', 'label=ags.run=image-build', '--filter', 'status=created'),
    ).toBe('');
  }, 120_000);
});
if (!HAS_ENGINE) test.skip('Docker does not answer here', () => undefined);
