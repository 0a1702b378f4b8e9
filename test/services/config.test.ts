// test/services/config.test.ts: the key `services`, its merging across layers, and the variables that programs get.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, afterEach, describe, expect, test } from 'vitest';
import { SERVICE_PRESETS } from '../../src/protocol/service.ts';
import { connectionOf, environmentOf } from '../../src/services/presets/connection.ts';
import { findPrograms } from '../../src/services/presets/find-programs.ts';
import { PRESETS } from '../../src/services/presets/presets.ts';
import { planServices } from '../../src/run/plan-services.ts';
import { OFFLINE } from '../../src/run/network/plan-network.ts';
import { createFixture, type Fixture } from '../config/config-fixture.ts';

let at: Fixture;
beforeEach(() => (at = createFixture()));
afterEach(() => at[Symbol.dispose]());

const GiB = 2 ** 30;

describe('configuration', () => {
  test('a preset alone is enough; a later layer changes single keys, replaces the service, or removes it', async () => {
    at.user('services: { db: postgres, cache: redis, old: redis, mail: { run: "mailer", ports: [25, 8025] } }\n');
    at.project(
      'services:\n  db: { memory: 1g, seed: [a.sql] }\n  cache: { preset: valkey, port: 7000 }\n  old: false\n  mail:\n',
    );
    const { services } = await at.load();
    expect(services).toMatchObject([
      { name: 'db', preset: 'postgres', memoryBytes: GiB, seed: ['a.sql'], ports: [] },
      { name: 'cache', preset: 'valkey', memoryBytes: GiB / 2, ports: [7000] },
    ]);
    expect(services.length).toBe(2);
  });

  test('services without a memory limit share the memory that the others leave', async () => {
    at.user('limits: { memory: 1g }\nservices: { a: { preset: redis, memory: 424m }, b: redis, c: redis, d: redis }\n');
    const { services } = await at.load();
    expect(services.map(({ memoryBytes }) => memoryBytes / 2 ** 20)).toEqual([424, 200, 200, 200]);
  });

  test.each([
    ['services: { db: postgre }\n', 'services.db.preset: expected one of postgres, mariadb'],
    [
      'services: { db: { preset: postgres, sed: [a.sql] } }\n',
      'unknown key "sed" in services.db (did you mean "seed"?)',
    ],
    ['services: { Db: postgres }\n', 'expected a name of lower-case letters'],
    ['services: { localhost: postgres }\n', 'expected a name of lower-case letters'],
    ['services: { db: { memory: 1g } }\n', 'expected either a preset, or run, or an image'],
    ['services: { db: { preset: redis, run: x } }\n', 'expected either a preset, or run, or an image'],
    ['services: { db: { run: server } }\n', 'its ports are missing'],
    ['services: { db: { preset: redis, ports: [1] } }\n', 'a preset has its own ports'],
    ['services: { db: { run: server, ports: [1, 1] } }\n', 'a port is listed twice'],
    ['services: { db: { preset: redis, memory: 1m } }\n', 'is too little'],
    ['services: { db: { preset: redis, memory: 900g } }\n', 'is more than the sandbox may use (limits.memory'],
    [
      'limits: { memory: 1g }\nservices: { a: { preset: redis, memory: 600m }, b: { preset: redis, memory: 600m } }\n',
      'The 2 services together need more memory than the sandbox may use (limits.memory: 1g)',
    ],
    [
      `limits: { memory: 64m }\nservices: { ${[1, 2, 3, 4, 5].map((n) => `s${n}: redis`).join(', ')} }\n`,
      'The 5 services together',
    ],
    ['services: { db: { image: x } }\n', 'its ports are missing'],
    ['services: { db: { preset: redis, scratch: [/run] } }\n', 'only a service with an image has such directories'],
    ['services: { db: { preset: redis, ready: { port: 1, command: x } } }\n', 'expected either port or command'],
    ['services: { db: { preset: redis, seed: [../a.sh] } }\n', 'expected a path in the project'],
    [
      'services: { db: redis }\nnetwork: { tcp: ["db=localhost:5432"] }\n',
      'a grant in network.tcp already has this name',
    ],
  ])('%j is refused', async (text, message) => {
    at.user(text);
    expect(await at.problem()).toMatchObject({
      code: 'config.invalid',
      message: expect.stringContaining(message) as string,
    });
  });
});

describe('the variables of programs', () => {
  test('every preset is listed, and sets its URL', () => {
    expect(Object.keys(PRESETS).toSorted()).toEqual(SERVICE_PRESETS.filter((name) => name !== 'none').toSorted());
    for (const [name, preset] of Object.entries(PRESETS)) {
      const to = connectionOf({ ...service('it'), preset: name as 'redis' }, preset);
      expect([name, Object.values(preset.env(to)).includes(preset.url(to))]).toEqual([name, true]);
    }
  });

  test('the first service of a kind sets the usual variables; configured ones win', () => {
    const one = described({ ...service('a-b'), preset: 'postgres', password: 'p@ss/word' });
    const two = described({
      ...service('two'),
      preset: 'mariadb',
      env: { DATABASE_URL: '{host}|{port}|{user}|{other}' },
    });
    expect(environmentOf([one, two])).toMatchObject({
      A_B_URL: 'postgres://app:p%40ss%2Fword@a-b:5432/app',
      TWO_URL: 'mysql://app:app@two:3306/app',
      PGHOST: 'a-b',
      MYSQL_HOST: 'two',
      DATABASE_URL: 'two|3306|app|{other}',
    });
  });

  test('a port on localhost belongs to the first service that has it; listeners of the gateway and grants keep theirs', () => {
    const grant = { name: 'x', port: 6379, host: 'h', targetPort: 1, origin: '' };
    const { services, network } = planServices(
      { env: { PATH: '' } },
      [service('a', [5000, 80]), service('b', [5000, 3128]), service('c', [6379])],
      {
        ...OFFLINE,
        spec: {
          kind: 'gateway',
          reach: false,
          listeners: [{ name: 'web', protocol: 'tcp', address: '0.0.0.0', port: 80 }],
        },
        grants: [{ grant: grant as never, address: '127.0.0.1', listener: 'tcp x' }],
      },
    );
    expect([...services.listeners].map(([place, { name, port }]) => `${place} ${name}:${port}`)).toEqual([
      '127.77.0.1:5000 a:5000',
      '127.0.0.1:5000 a:5000',
      '127.77.0.1:80 a:80',
      '127.0.0.1:80 a:80',
      '127.77.0.2:5000 b:5000',
      '127.77.0.2:3128 b:3128',
      '127.77.0.3:6379 c:6379',
    ]);
    // The listener on all addresses keeps port 80.
    expect(
      network.spec.kind === 'gateway' && network.spec.listeners.map(({ address, port }) => `${address}:${port}`),
    ).toEqual([
      '0.0.0.0:80',
      '127.77.0.1:5000',
      '127.0.0.1:5000',
      '127.77.0.2:5000',
      '127.77.0.2:3128',
      '127.77.0.3:6379',
    ]);
    expect(services.hosts).toBe('127.77.0.1 a\n127.77.0.2 b\n127.77.0.3 c\n');
  });
});

test('of several installed versions the highest is used, or the configured one', () => {
  const root = mkdtempSync(join(tmpdir(), 'ags-versions-'));
  try {
    for (const version of ['9', '15', '16']) {
      mkdirSync(join(root, version, 'bin'), { recursive: true });
      writeFileSync(join(root, version, 'bin/server'), version, { mode: 0o755 });
    }
    const preset = { programs: [['server']], places: [`${root}/*/bin`] };
    const first = (version: string | null): unknown => {
      const found = findPrograms(preset, '/nonexistent', version);
      return 'path' in found ? found.path[0] : found;
    };
    expect([first(null), first('9'), first('7')]).toEqual([
      join(root, '16/bin'),
      join(root, '9/bin'),
      { missing: ['server'] },
    ]);
  } finally {
    rmSync(root, { recursive: true });
  }
});

function service(name: string, ports: readonly number[] = []) {
  return {
    name,
    preset: null,
    run: 'x',
    image: null,
    environment: {},
    scratch: [],
    version: null,
    database: null,
    user: null,
    password: null,
    ports,
    seed: [],
    env: {},
    ready: { port: null, command: null, timeoutSeconds: 60 },
    memoryBytes: GiB,
    origin: '',
  };
}

function described(
  one: Omit<ReturnType<typeof service>, 'preset' | 'env' | 'password'> & {
    preset: 'postgres' | 'mariadb';
    env?: Record<string, string>;
    password?: string | null;
  },
) {
  const preset = PRESETS[one.preset];
  const whole = { env: {}, password: null, ...one };
  return { service: whole, preset, to: connectionOf(whole, preset) };
}
