import { execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import * as fs from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { LIMITS, TOOL_DIRS } from '../../src/config/defaults.ts';
import { listKeys } from '../../src/config/file/keys.ts';
import { loadConfig } from '../../src/config/load.ts';
import { revoke } from '../../src/config/trust.ts';
import { createFixture, root, type Fixture } from './config-fixture.ts';

let at: Fixture;
beforeEach(() => {
  at = createFixture();
});
afterEach(() => at[Symbol.dispose]());

describe('trust', () => {
  const WIDENING =
    'mounts:\n  - path: /opt/models\nreveal: [.env.test]\nlimits:\n  memory: 100%\n  disk: 1g\n  cpu: 5m\n';
  const ASKS = [
    'ags.yaml:2: mounts: see /opt/models of this machine',
    'ags.yaml:3: reveal: see hidden files of the project: .env.test',
    'ags.yaml:5: limits.memory: use 100%, above your 75%',
  ];

  test('a project that requests more is refused, with its exact requests', async () => {
    at.project(WIDENING);
    expect(await at.problem()).toEqual({
      code: 'config.untrusted',
      message: `ags.yaml asks for rights that you have not approved:\n${ASKS.map((ask) => `  ${ask}`).join('\n')}`,
    });
    expect(await at.asks()).toEqual(ASKS);
  });

  test('an approved project takes effect until its file changes by a byte', async () => {
    at.project(WIDENING);
    at.trust(ASKS);
    expect((await at.load()).reveal).toEqual(['.env.test']);
    at.project(`${WIDENING}# more\n`);
    expect(await at.asks()).toEqual(ASKS);
    at.project(WIDENING);
    expect(await at.asks()).toEqual([]);
    expect(revoke(at.input)).toBe(true);
    expect(await at.asks()).toEqual(ASKS);
    expect(revoke(at.input)).toBe(false);
  });

  test('an approval covers one project only', async () => {
    at.project(WIDENING);
    at.trust(ASKS);
    const other = join(at.input.home, 'other');
    fs.cpSync(at.input.projectDir, other, { recursive: true });
    await expect(loadConfig({ ...at.input, projectDir: other })).rejects.toMatchObject({
      code: 'config.untrusted',
      details: { asks: ASKS },
    });
  });

  test('an approval does not cover rights that the user restricted later', async () => {
    at.project('limits:\n  disk: 10g\nreveal: [.env.test]\n');
    at.trust(['ags.yaml:3: reveal: see hidden files of the project: .env.test']);
    expect(await at.asks()).toEqual([]);
    at.user('limits:\n  disk: 2g\n');
    expect(await at.asks()).toEqual([
      'ags.yaml:2: limits.disk: use 10g, above your 2g',
      'ags.yaml:3: reveal: see hidden files of the project: .env.test',
    ]);
  });

  test('rights that the user grants to all projects need no approval', async () => {
    at.user('mounts:\n  - path: /opt/models\nlimits:\n  memory: 100%\nreveal: [.env.test]\n');
    at.project(WIDENING);
    expect(await at.asks()).toEqual([]);
  });

  test('a service image that the user configures runs as the user says, or needs approval', async () => {
    const service = (more: string): string => `services: { db: { image: 'mine:1', ports: [5432]${more} } }\n`;
    const asks = ['ags.yaml:1: services.db: run the image mine:1 of your engine, and see what is in it'];
    at.user(service(''));
    at.project(service(', memory: 64m'));
    expect(await at.asks()).toEqual([]);
    at.project(`${service('').replace('db', 'other')}`);
    expect(await at.asks()).toEqual([]);
    for (const more of [
      "run: 'cat /secret'",
      'environment: { BASH_ENV: /x }',
      "ready: { command: 'cat /secret' }",
      'ports: [5432, 22]',
    ]) {
      at.project(service(`, ${more}`).replace(', ports: [5432], ports', ', ports'));
      expect(await at.asks(), more).toEqual(asks);
    }
    // The project overrides only part of the user's service.
    at.project('services: { db: { environment: { BASH_ENV: /x } } }\n');
    expect(await at.asks()).toEqual(asks);
  });

  test('allowing projects nested Docker does not reveal hidden files', async () => {
    at.user('docker: true\n');
    at.project('compose: true\n');
    expect(await at.asks()).toEqual([]);
    at.project('compose: { override: secrets.yml }\n');
    expect(await at.asks()).toEqual([
      'ags.yaml:1: compose.override: lay your own secrets.yml over its compose files, even if it is hidden',
    ]);
    at.project('compose: { enabled: false, override: secrets.yml }\n');
    expect(await at.asks()).toEqual([
      'ags.yaml:1: compose.override: lay your own secrets.yml over its compose files, even if it is hidden',
    ]);
    at.project('compose: { override: secrets.yml }\n');
    at.user('docker: true\ncompose: { override: secrets.yml }\n');
    expect(await at.asks()).toEqual([]);
  });

  test('flags and the cache do not replace an approval', async () => {
    at.project(WIDENING);
    at.trust(ASKS);
    await at.load();
    revoke(at.input);
    expect(
      (await at.problem({ mounts: ['/opt/models'], reveal: ['.env.test'], limits: { memory: '100%' } })).code,
    ).toBe('config.untrusted');
  });

  test('every key that widens rights needs approval, and no other key does', async () => {
    at.user(
      'home: ~/aihome\nkernel: { unixSockets: false }\nlimits: { cpu: 1h, time: 1h, cpus: 1 }\nnetwork: { mode: off, defaults: false, limits: { bytesOut: 1g } }\ntasks: { cost: 2, tokens: 1000 }\n',
    );
    const values: Record<string, unknown> = {
      user: 1234,
      backend: 'docker',
      image: 'debian:12',
      dockerfile: 'Dockerfile',
      runtime: 'runsc',
      'docker.enabled': true,
      'docker.registries': ['ghcr.io'],
      'compose.enabled': true,
      'compose.files': ['compose.yaml'],
      'compose.override': 'mine.yaml',
      'compose.profiles': ['dev'],
      'compose.services': ['db'],
      'compose.env': { TAG: '15' },
      'compose.timeout': '1m',
      workspace: 'copy',
      'home.keep': 'project',
      'home.shared': true,
      'tools.defaults': false,
      'tools.add': ['.foo'],
      'tools.remove': ['.cargo'],
      mounts: [{ path: '/opt/x' }],
      etc: ['odbc.ini'],
      'env.pass': ['SECRET_*'],
      'env.set': { A: 'b' },
      hide: ['x'],
      reveal: ['.env'],
      'limits.processes': 100_000,
      'limits.memory': '100%',
      'limits.openFiles': 1_000_000,
      'limits.fileSize': '21g',
      'limits.disk': '21g',
      'limits.tmp': '2g',
      'limits.cpu': 'none',
      'limits.time': '2h',
      'limits.cpus': 'none',
      'kernel.ptrace': true,
      'kernel.unixSockets': true,
      'network.mode': 'on',
      'network.defaults': true,
      'network.presets': ['docker'],
      'network.allow': ['example.com'],
      'network.deny': ['example.com'],
      'network.addresses': ['10.0.0.0/8'],
      'network.tcp': ['db=localhost:5432'],
      'network.publish': [3000],
      'network.upstream': [{ proxy: 'http://proxy.corp:3128' }],
      'network.dns': ['10.0.0.1'],
      'network.askSeconds': 120,
      'network.limits.connections': 513,
      'network.limits.perSecond': 201,
      'network.limits.bytesOut': 'none',
      secrets: [{ name: 'a', host: 'example.com', env: 'A', from: { env: 'A' } }],
      'hooks.use': ['log'],
      'hooks.timeout': '1m',
      'hooks.pre-any': [{ run: ['a'] }],
      'hooks.pre-bash': [{ run: ['a'] }],
      'hooks.pre-writes': [{ run: ['a'] }],
      'hooks.post-writes': [{ run: ['a'] }],
      'hooks.post-stop': [{ run: ['a'] }],
      'gateway.listen': ['127.0.0.1:3128'],
      'gateway.admin': '127.0.0.1:9180',
      'gateway.log': '/tmp/log',
      'gateway.tokenFile': '/tmp/token',
      'setup.run': ['npm ci'],
      'setup.inputs': ['package-lock.json'],
      'setup.timeout': '1h',
      'tasks.agent': 'claude',
      'tasks.model': 'opus',
      'tasks.parallel': 3,
      'tasks.time': '2h',
      'tasks.cost': 5,
      'tasks.budget': '20/day',
      'tasks.tokens': 5000,
      'tasks.turns': 10,
      agents: { claude: { model: 'opus' } },
      prices: { 'gpt-5.5': '1/2' },
      services: { db: { run: 'server', ports: [80], seed: ['a.sh'], env: { A: 'b' }, memory: '1g' } },
      'checks.run': ['npm test'],
      'checks.timeout': '1h',
      'merge.check': true,
      'review.risky': ['x'],
    };
    const keys = listKeys().filter(({ path, kind }) => kind !== 'section' && !/\[\]|<name>/.test(path));
    expect(Object.keys(values)).toEqual(keys.map(({ path }) => path));
    for (const { path, trust: needed } of keys) {
      at.project(
        JSON.stringify(path.split('.').reduceRight<unknown>((inner, name) => ({ [name]: inner }), values[path])),
      );
      // The override file needs approval in addition to nested Docker.
      const asked = path === 'compose.override' ? 2 : 1;
      expect([path, (await at.asks()).length]).toEqual([path, needed === 'never' ? 0 : asked]);
    }
  });

  test("lower limits than the user's need no approval", async () => {
    at.project(
      `limits:\n${Object.keys(LIMITS)
        .map(
          (name) =>
            `  ${name}: ${name === 'processes' || name === 'openFiles' ? 100 : name === 'cpu' || name === 'time' ? '1m' : name === 'cpus' ? 1.5 : '100m'}`,
        )
        .join('\n')}\n`,
    );
    expect((await at.load()).limits).toEqual({
      processes: 100,
      memoryBytes: 100 * 2 ** 20,
      openFiles: 100,
      fileBytes: 100 * 2 ** 20,
      diskBytes: 100 * 2 ** 20,
      tmpBytes: 100 * 2 ** 20,
      cpuSeconds: 60,
      wallSeconds: 60,
      cpus: 1.5,
    });
  });

  test('a project cannot enable built-in tools that the user disabled', async () => {
    at.user('tools: { defaults: false }\n');
    at.project('tools: { defaults: true }\n');
    expect((await at.asks()).length).toBe(TOOL_DIRS.length);
  });

  test('a damaged trust file stops every command that needs it', async () => {
    at.project(WIDENING);
    at.trust(ASKS);
    fs.writeFileSync(join(at.input.stateDir, 'trust.json'), '{"version":1,"projects":{');
    expect((await at.problem()).code).toBe('state.damaged');
    fs.writeFileSync(join(at.input.stateDir, 'trust.json'), '{"version":2,"projects":{}}');
    expect((await at.problem()).code).toBe('state.damaged');
  });

  test('only the owner can read the approvals', () => {
    at.project(WIDENING);
    at.trust(ASKS);
    expect(fs.statSync(join(at.input.stateDir, 'trust.json')).mode & 0o777).toBe(0o600);
  });
});

const entries = (): string[] => fs.readdirSync(at.input.cacheDir).map((name) => join(at.input.cacheDir, name));

describe('cache', () => {
  test('unchanged files are parsed once, into a cache for their owner only, without leftovers', async () => {
    at.project('workspace: copy\n');
    const first = await at.load();
    expect(
      entries().map((path) => [
        /^config-[0-9a-f]{64}\.json$/.test(path.slice(at.input.cacheDir.length + 1)),
        fs.statSync(path).mode & 0o777,
      ]),
    ).toEqual([[true, 0o600]]);
    expect(await at.load()).toEqual(first);
    expect(entries().length).toBe(1);
  });

  test('a cache entry is used', async () => {
    at.project('workspace: copy\n');
    await at.load();
    const [path = ''] = entries();
    const entry = JSON.parse(fs.readFileSync(path, 'utf8')) as {
      sha256: string;
      layers: { values: { workspace: string } }[];
    };
    entry.layers[0]!.values.workspace = 'overlay';
    entry.sha256 = createHash('sha256').update(JSON.stringify(entry.layers)).digest('hex');
    fs.writeFileSync(path, JSON.stringify(entry));
    expect((await at.load()).workspace).toBe('overlay');
  });

  test('a damaged, foreign or planted entry is ignored and replaced', async () => {
    at.project('workspace: copy\n');
    await at.load();
    const [path = ''] = entries();
    const good = fs.readFileSync(path, 'utf8');
    for (const bad of ['', '{', '{"sha256":"x","layers":[]}', good.replace('"copy"', '"overlay"'), 'null']) {
      fs.writeFileSync(path, bad);
      expect((await at.load()).workspace).toBe('copy');
      expect(fs.readFileSync(path, 'utf8')).toBe(good);
    }
    fs.chmodSync(path, 0o666);
    expect((await at.load()).workspace).toBe('copy');
    expect(fs.statSync(path).mode & 0o777).toBe(0o600);
    fs.renameSync(path, join(at.dir, 'elsewhere.json'));
    fs.symlinkSync(join(at.dir, 'elsewhere.json'), path);
    expect((await at.load()).workspace).toBe('copy');
    expect(fs.lstatSync(path).isFile()).toBe(true);
  });

  test('an unwritable cache stops no command', async () => {
    fs.mkdirSync(dirname(at.input.cacheDir), { recursive: true });
    fs.writeFileSync(at.input.cacheDir, 'a file where the directory should be');
    at.project('workspace: copy\n');
    expect((await at.load()).workspace).toBe('copy');
  });

  test('old entries are removed', async () => {
    for (let i = 0; i < 40; i++) {
      at.project(`# ${i}\n`);
      await at.load();
    }
    expect(entries().length).toBe(32);
  });
});

describe('loaded packages', () => {
  // An installed build: dist next to package.json and node_modules.
  let installed = '';
  beforeAll(() => {
    installed = fs.mkdtempSync(join(tmpdir(), 'ags-installed-'));
    fs.copyFileSync(join(root, 'package.json'), join(installed, 'package.json'));
    fs.symlinkSync(join(root, 'node_modules'), join(installed, 'node_modules'));
    spawnSync(join(root, 'node_modules/.bin/tsc'), ['-p', root, '--outDir', join(installed, 'dist')], {
      stdio: 'ignore',
    });
  }, 120_000);
  afterAll(() => fs.rmSync(installed, { recursive: true, force: true }));

  /** The packages whose code ran, from V8's coverage of the process. */
  function packagesLoaded(): string[] {
    const coverage = fs.mkdtempSync(join(installed, 'coverage-'));
    const code = `import { loadConfig } from ${JSON.stringify(join(installed, 'dist/config/load.js'))}; await loadConfig(${JSON.stringify(at.input)});`;
    execFileSync(process.execPath, ['--input-type=module', '-e', code], { env: { NODE_V8_COVERAGE: coverage } });
    const files = fs
      .readdirSync(coverage)
      .map((name) => JSON.parse(fs.readFileSync(join(coverage, name), 'utf8')) as { result: { url: string }[] });
    const urls = files.flatMap(({ result }) => result.map(({ url }) => url));
    expect(urls.some((url) => url.endsWith('/dist/config/load.js'))).toBe(true);
    return [
      ...new Set(urls.flatMap((url) => /\/node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(url)?.[1] ?? [])),
    ].toSorted();
  }

  test('ags loads neither zod nor yaml without files, both for a new file, and neither for the same file again', () => {
    expect(packagesLoaded()).toEqual([]);
    at.project('hide: [x]\n');
    at.user('limits: { memory: 2g }\n');
    expect(packagesLoaded()).toEqual(['yaml', 'zod']);
    expect(packagesLoaded()).toEqual([]);
    at.project('hide: [y]\n');
    expect(packagesLoaded()).toEqual(['yaml', 'zod']);
  });

  test('an approved project that requests more loads without them, too', () => {
    at.project('reveal: [.env]\n');
    at.trust(['ags.yaml:1: reveal: see hidden files of the project: .env']);
    expect(packagesLoaded()).toEqual(['yaml', 'zod']);
    expect(packagesLoaded()).toEqual([]);
  });
});
