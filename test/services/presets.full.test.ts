// test/services/presets.full.test.ts: the other presets, with the real programs of Debian.
// needs: sandbox, postgres, redis, mariadb, nats, rabbitmq, memcached
import { expect, test } from 'vitest';
import { USUAL } from '../harness.ts';
import { withServices } from './place.ts';

const NATS = `
import os, socket, urllib.parse
at = urllib.parse.urlparse(os.environ['NATS_URL'])
with socket.create_connection((at.hostname, at.port)) as s:
    f = s.makefile('rwb'); f.readline()
    f.write(b'CONNECT {"verbose":false}\\r\\nSUB a 1\\r\\nPUB a 2\\r\\nhi\\r\\n'); f.flush()
    print(f.readline().decode().strip(), f.readline().decode().strip())
`;

// Signs in and opens a virtual host, like every AMQP client.
const AMQP = `
import os, socket, struct, urllib.parse
at = urllib.parse.urlparse(os.environ['AMQP_URL'])
short = lambda text: bytes([len(text)]) + text
long = lambda text: struct.pack('>I', len(text)) + text
with socket.create_connection((at.hostname, at.port)) as s:
    f = s.makefile('rwb'); f.write(b'AMQP\\0\\0\\x09\\x01'); f.flush()
    def hear():
        size = struct.unpack('>BHI', f.read(7))[2]; body = f.read(size + 1)
        return struct.unpack('>HH', body[:4]), body[4:-1]
    def say(group, method, rest):
        body = struct.pack('>HH', group, method) + rest
        f.write(struct.pack('>BHI', 1, 0, len(body)) + body + b'\\xce'); f.flush()
    hear()
    who = '\\0'.join(['', at.username, at.password]).encode()
    say(10, 11, long(b'') + short(b'PLAIN') + long(who) + short(b'en_US'))
    say(10, 31, hear()[1]); say(10, 40, short(b'/') + short(b'') + b'\\0')
    print('open' if hear()[0] == (10, 41) else 'refused')
`;
const MEMCACHED = `
import os, socket
host, port = os.environ['MEMCACHE_SERVERS'].split(':')
with socket.create_connection((host, int(port))) as s:
    f = s.makefile('rwb'); f.write(b'set a 0 0 2\\r\\nhi\\r\\nget a\\r\\n'); f.flush()
    print(*(f.readline().decode().strip() for _ in range(4)))
`;

test.each(USUAL)('as %s: RabbitMQ and Memcached', async (caller) => {
  using machine = withServices(caller, ['queue: rabbitmq', 'cache: memcached'], {
    'amqp.py': AMQP,
    'memcached.py': MEMCACHED,
  });
  const run = await machine.ags(['exec', '--', 'sh', '-c', 'python3 amqp.py; python3 memcached.py'], {
    timeoutMs: 110_000,
  });
  expect(run).toEqual({ code: 0, signal: null, stdout: 'open\nSTORED VALUE a 0 2 hi END\n', stderr: '' });
});

test.each(USUAL)('as %s: MariaDB and NATS', async (caller) => {
  using machine = withServices(
    caller,
    [`shop: { preset: mysql, database: shop, password: "it's \\\\ odd", seed: [seed.sql, more.sh] }`, 'bus: nats'],
    {
      'seed.sql': "create table item(id int primary key, name text);\ninsert into item values (1, 'one');\n",
      'more.sh':
        'mariadb --no-defaults -h 127.0.0.1 -u "$MYSQL_USER" "$MYSQL_DATABASE" -e "insert into item values (2, \'two\')"\n',
      'nats.py': NATS,
    },
  );
  const script =
    'mariadb --no-defaults -N -h shop -u app shop -e "select name from item order by id"; python3 nats.py; echo "$MYSQL_URL"';
  const run = await machine.ags(['exec', '--', 'sh', '-c', script], { timeoutMs: 110_000 });
  expect({ ...run, stderr: run.stderr.replaceAll(/ags: The service \w+ is being seeded.*\n/g, '') }).toEqual({
    code: 0,
    signal: null,
    stdout: "one\ntwo\nMSG a 1 2 hi\nmysql://app:it's%20%5C%20odd@shop:3306/shop\n",
    stderr: '',
  });
});
