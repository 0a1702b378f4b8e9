// test/services/exec.full.test.ts: a command beside real services.
// needs: sandbox, postgres, redis, python3
import { describe, expect, test } from 'vitest';
import { ONE, USUAL } from '../harness.ts';
import { SEED, withServices } from './place.ts';

/** Asks the name server inside for "cache", like programs that do not read /etc/hosts. */
const ASK_NAME = [
  'import socket',
  's = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)',
  's.settimeout(20)',
  's.sendto(bytes.fromhex("123401000001000000000000056361636865" + "0000010001"), ("127.0.0.1", 53))',
  'print(socket.inet_ntoa(s.recv(512)[-4:]))',
].join('; ');

describe.each(USUAL)('as %s', (caller) => {
  test('a command finds seeded services under their names, on localhost and in its variables', async () => {
    using machine = withServices(
      caller,
      [
        'db: { preset: postgres, database: shop, seed: [db/seed.sql], env: { JDBC: "jdbc:postgresql://{host}:{port}/{database}" } }',
        'cache: { preset: redis, seed: [seed.redis] }',
      ],
      { 'db/seed.sql': SEED, 'seed.redis': 'SET greeting hello\n' },
    );
    const script = [
      'psql -Atc "select name from item order by id"',
      'psql -h localhost -Atc "select 2 + 2"',
      'redis-cli -u "$REDIS_URL" get greeting',
      'redis-cli get greeting',
      'echo "$DATABASE_URL $DB_URL $CACHE_URL $JDBC"',
      'getent hosts db | tr -s " "',
      `python3 -c '${ASK_NAME}'`,
      'case ",$NO_PROXY," in *,db,*) echo direct;; esac',
    ].join('\n');
    const first = await machine.ags(['exec', '--', 'sh', '-c', script]);
    const url = 'postgres://app:app@db:5432/shop';
    expect(first).toEqual({
      code: 0,
      signal: null,
      stdout: `one\ntwo\n4\nhello\nhello\n${url} ${url} redis://cache:6379 jdbc:postgresql://db:5432/shop\n127.77.0.1 db\n127.77.0.2\ndirect\n`,
      stderr: expect.stringContaining('The service db is being seeded for the first time') as string,
    });
    // Each run has fresh data, without seeding again.
    const change = await machine.ags(['exec', '--', 'psql', '-Atc', 'delete from item returning id']);
    expect({ ...change, stdout: change.stdout.split('\n')[0] }).toEqual({
      code: 0,
      signal: null,
      stdout: '1',
      stderr: '',
    });
    const after = await machine.ags(['exec', '--', 'psql', '-Atc', 'select count(*) from item']);
    expect(after).toEqual({ code: 0, signal: null, stdout: '2\n', stderr: '' });
  });

  test('two services of one kind have separate addresses', async () => {
    using machine = withServices(caller, ['one: { preset: redis }', 'two: { preset: redis, password: secret }']);
    const script =
      'redis-cli -h one set who first; redis-cli -u "$TWO_URL" --no-auth-warning set who second; redis-cli get who; echo "$REDIS_URL $TWO_URL"';
    expect(await machine.ags(['exec', '--', 'sh', '-c', script])).toEqual({
      code: 0,
      signal: null,
      stdout: 'OK\nOK\nfirst\nredis://one:6379 redis://default:secret@two:6379\n',
      stderr: '',
    });
  });

  test('services work without a network, and unselected ones do not exist', async () => {
    using machine = withServices(caller, ['cache: redis', 'other: redis']);
    const off = await machine.ags([
      'exec',
      '--network',
      'off',
      '--service',
      'cache',
      '--',
      'sh',
      '-c',
      'redis-cli -h cache ping; getent hosts other || echo none',
    ]);
    expect(off).toEqual({ code: 0, signal: null, stdout: 'PONG\nnone\n', stderr: '' });
    const none = await machine.ags(['exec', '--no-services', '--', 'sh', '-c', 'echo "[$REDIS_URL]"']);
    expect(none.stdout).toBe('[]\n');
    const unknown = await machine.ags(['exec', '--service', 'cahce', '--', 'true']);
    expect(unknown).toMatchObject({ code: 2, stderr: expect.stringContaining('Did you mean cache?') as string });
  });

  test('any program can be a service, seeded by a script', async () => {
    using machine = withServices(
      caller,
      [
        'files:',
        '  run: [python3, -m, http.server, --bind, 127.0.0.1, --directory, /run/ags/data, "8099"]',
        '  ports: [8099]',
        '  seed: [make.sh]',
      ],
      { 'make.sh': 'echo "made for $FILES_URL" > "$DATA/hello.txt"\n' },
    );
    const got = await machine.ags(['exec', '--', 'python3', '-c', FETCH, 'http://files:8099/hello.txt']);
    expect(got).toMatchObject({ code: 0, stdout: 'made for 127.0.0.1:8099\n' });
  });
});

const FETCH = 'import sys, urllib.request; sys.stdout.write(urllib.request.urlopen(sys.argv[1]).read().decode())';

test('a service that fails is reported at once, with the end of its log', async () => {
  using machine = withServices(ONE, ['bad: { run: "echo it is broken; exit 3", ports: [9] }']);
  const run = await machine.ags(['exec', '--', 'sleep', '600']);
  expect(run).toMatchObject({ code: 1, stdout: '' });
  expect(run.stderr).toContain('The service bad ended with 3.\n  it is broken\n');
  expect(run.stderr).toContain('--no-services');
});

test('a failed seed is reported with its output, and its data is not kept', async () => {
  using machine = withServices(ONE, ['db: { preset: postgres, seed: [seed.sql] }'], {
    'seed.sql': 'create table a(b int);\nselect nonsense;\n',
  });
  const run = await machine.ags(['exec', '--', 'sleep', '600']);
  expect(run.code).toBe(1);
  expect(run.stderr).toContain('could not be filled: the seed seed.sql failed');
  expect(run.stderr).toContain('column "nonsense" does not exist');
  machine.write('seed.sql', 'create table a(b int);\n');
  expect(await machine.ags(['exec', '--', 'psql', '-Atc', 'select count(*) from a'])).toMatchObject({
    code: 0,
    stdout: '0\n',
  });
});

test('a service that cannot run here is refused with a fix', async () => {
  using machine = withServices(ONE, ['db: { preset: postgres, version: 7 }']);
  expect(await machine.ags(['exec', '--', 'true'])).toMatchObject({
    code: 9,
    stderr: expect.stringContaining('Install it: apt-get install postgresql') as string,
  });
  machine.write('ags.yaml', 'services:\n  db: { preset: postgres, seed: [a.csv] }\n');
  expect(await machine.ags(['exec', '--', 'true'])).toMatchObject({
    code: 9,
    stderr: expect.stringContaining('it takes .sh, .sql') as string,
  });
});
