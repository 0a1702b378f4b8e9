// test/services/attacks.full.test.ts: a service cannot reach anything but its port, and an agent cannot reach anything of a service but its ports.
// needs: sandbox, python3
import { existsSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { processesWith } from '../attacks/host-view.ts';
import { until } from '../exec/given.ts';
import { CALLERS, type Machine } from '../harness.ts';
import { withServices } from './place.ts';

/** A service that answers every connection with what it can reach, and also listens on the next port. Its last argument is a mark. */
const SPY = `
import json, os, socket, sys
def marked(mark):
    found = []
    for name in os.listdir('/proc'):
        try: found += [name] if name.isdigit() and mark in open('/proc/' + name + '/cmdline', 'rb').read() else []
        except OSError: pass
    return found
port, project, home = int(sys.argv[1]), sys.argv[2], sys.argv[3]
def dial(address, number):
    try:
        socket.create_connection((address, number), 1).close(); return 'connected'
    except OSError as error: return error.strerror or 'refused'
other = socket.create_server(('127.0.0.1', port + 1))
server = socket.create_server(('127.0.0.1', port))
while True:
    guest, _ = server.accept()
    seen = {
        'interfaces': sorted(os.listdir('/sys/class/net')) if os.path.isdir('/sys/class/net') else [line.split(':')[0].strip() for line in open('/proc/net/dev') if ':' in line],
        'proxy': dial('127.0.0.1', 3128), 'internet': dial('192.0.2.1', 80),
        'project': os.path.exists(project), 'home': os.path.exists(os.path.join(home, 'secret')),
        'token': 'MY_TOKEN' in os.environ, 'root': os.getuid() == 0,
        'others': marked(b'agent-' + b'mark'),
    }
    guest.sendall((json.dumps(seen) + '\\n').encode()); guest.close()
`;

function spy(machine: Machine, mark: string): string {
  return JSON.stringify(['python3', '-c', SPY, '4000', machine.project, machine.home, mark]);
}

/** Processes of this machine with the mark as an argument. */
const running = (mark: string): number[] => processesWith(`\0${mark}\0`);

const PEER = `
import os, signal, socket, sys
def dial(address, number):
    try:
        with socket.create_connection((address, number), 20) as s: return s.makefile().readline().strip() or 'closed'
    except OSError as error: return error.strerror or 'refused'
print(dial('spy', 4000))
print(dial('spy', 4001), dial('127.0.0.1', 4001), dial('spy', 3131), dial('127.77.0.2', 4000), sep='; ')
found = []
for name in os.listdir('/proc'):
    try: found += [name] if name.isdigit() and b'spy-' + b'mark' in open('/proc/' + name + '/cmdline', 'rb').read() else []
    except OSError: pass
print(found)
signal.signal(signal.SIGTERM, signal.SIG_IGN)
for pid in range(2, 400):
    if pid not in (os.getpid(), os.getppid()):
        try: os.kill(pid, 9)
        except OSError: pass
print(dial('spy', 4000)[:1])
`;

describe.each(CALLERS)('as %s', (caller) => {
  test('a service sees no network, file, variable or process; an agent reaches its declared ports and nothing else of it', async () => {
    using machine = withServices(caller, ['spy: redis']);
    machine.write('../../secret', 'of the home\n');
    machine.write(
      'ags.yaml',
      `env: { pass: [MY_TOKEN] }\nservices: { spy: { run: ${spy(machine, 'spy-mark')}, ports: [4000] } }\n`,
    );
    const trusted = await machine.ags(['trust', '--yes']);
    expect(trusted.code, trusted.stderr).toBe(0);
    const run = await machine.ags(['exec', '--', 'python3', '-c', PEER, 'agent-mark'], { env: { MY_TOKEN: 'secret' } });
    expect(run.code, run.stderr).toBe(0);
    const [seen = '', ports, processes, after] = run.stdout.trim().split('\n');
    expect(JSON.parse(seen)).toEqual({
      interfaces: ['lo'],
      proxy: 'Connection refused',
      internet: 'Network is unreachable',
      project: false,
      home: false,
      token: false,
      root: false,
      others: [],
    });
    expect(ports).toBe('Connection refused; Connection refused; Connection refused; Connection refused');
    expect(processes).toBe('[]');
    expect(after).toBe('{');
    expect(running('spy-mark')).toEqual([]);
  });

  test('two tasks at the same time have separate data', async () => {
    using machine = withServices(caller, ['cache: redis']);
    const first = machine.start(['exec', '--', 'sh', '-c', 'redis-cli set who first; read go; redis-cli get who']);
    let said = '';
    first.stdout?.on('data', (chunk: Buffer) => (said += chunk.toString('utf8')));
    const over = new Promise((resolve) => first.on('close', resolve));
    await until(() => said === 'OK\n');
    const second = await machine.ags(['exec', '--', 'sh', '-c', 'redis-cli get who; redis-cli set who second']);
    expect(second).toMatchObject({ code: 0, stdout: '\nOK\n' });
    first.stdin?.end('go\n');
    await over;
    expect(said).toBe('OK\nfirst\n');
  });

  test('a killed ags leaves no process of a service', async () => {
    using machine = withServices(caller, []);
    const mark = `left-${caller}-${process.pid}`;
    machine.write('ags.yaml', `services: { spy: { run: ${spy(machine, mark)}, ports: [4000] } }\n`);
    const child = machine.start([
      'exec',
      '--',
      'python3',
      '-c',
      `${PEER.split('for pid')[0]}\nprint('up', flush=True)\ninput()`,
    ]);
    let said = '';
    child.stdout?.on('data', (chunk: Buffer) => (said += chunk.toString('utf8')));
    await until(() => said.includes('up'));
    expect(running(mark).length).toBeGreaterThan(0);
    child.kill('SIGKILL');
    await until(() => running(mark).length === 0);
  });
});

const [caller = 'user'] = CALLERS;

test('a service that never becomes ready is ended, and so is a client that waits for it', async () => {
  const mark = `never-${process.pid}`;
  using machine = withServices(caller, [
    `slow: { run: [sh, -c, 'sleep 600; :', ${mark}], ports: [4000], ready: { timeout: 1s } }`,
  ]);
  const run = await machine.ags([
    'exec',
    '--',
    'python3',
    '-c',
    'import socket; socket.create_connection(("slow", 4000)).recv(1)',
  ]);
  expect(run).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('The service slow was not ready after 1 s (ready.timeout).') as string,
  });
  expect(running(mark)).toEqual([]);
});

/** Opens 700 connections and prints how many stay open, then whether a new one works after they close. */
const FLOOD = `
import select, socket
def alive(one):
    try: return not select.select([one], [], [], 0)[0] or one.recv(1) != b''
    except OSError: return False
all = [socket.create_connection(('web', 4000)) for _ in range(700)]
select.select([], [], [], 2)
print(sum(alive(one) for one in all))
for one in all: one.close()
def answered():
    with socket.create_connection(('web', 4000)) as one:
        one.settimeout(1)
        try: one.sendall(b'x'); return one.recv(1) == b'x'
        except OSError: return False
print(any(answered() for _ in range(60)))
`;
const ECHO = `
import socketserver
class Echo(socketserver.BaseRequestHandler):
    def handle(self): self.request.sendall(self.request.recv(1))
class Server(socketserver.ThreadingTCPServer): request_queue_size = 1000
Server(('127.0.0.1', 4000), Echo).serve_forever()
`;

test('an agent cannot exhaust the descriptors of the runner with connections to a service', async () => {
  using machine = withServices(caller, [`web: { run: ${JSON.stringify(['python3', '-c', ECHO])}, ports: [4000] }`]);
  const run = await machine.ags(['exec', '--', 'python3', '-c', FLOOD]);
  expect([run.code, run.stdout], run.stderr).toEqual([0, '512\nTrue\n']);
});

test('a seed that is a link, behind a link, or hidden is not read', async () => {
  using machine = withServices(caller, ['db: { preset: postgres, seed: [seed.sql] }'], {});
  const outside = join(machine.root, 'outside.sql');
  writeFileSync(outside, 'select 1;\n');
  symlinkSync(outside, join(machine.project, 'seed.sql'));
  const tried = async (): Promise<string> => (await machine.ags(['exec', '--', 'sleep', '600'])).stderr;
  expect(await tried()).toContain('cannot be seeded with seed.sql: it is a link');
  symlinkSync(machine.root, join(machine.project, 'away'));
  machine.write('ags.yaml', 'services: { db: { preset: postgres, seed: [away/outside.sql] } }\n');
  expect(await tried()).toMatch(/cannot be seeded with away\/outside\.sql: it (is a link|does not exist)/);
  machine.write('.env.sh', 'true\n');
  machine.write('ags.yaml', 'services: { db: { preset: postgres, seed: [.env.sh] } }\n');
  expect(await tried()).toContain('cannot be seeded with .env.sh: it is hidden from sandboxes');
});

test('control characters are removed from the log of a service', async () => {
  using machine = withServices(caller, [
    String.raw`loud: { run: "printf 'a\\033]0;title\\007b\\n'; exec redis-server --port 4000 --save ''", ports: [4000] }`,
  ]);
  const child = machine.start(['exec', '--', 'sh', '-c', 'redis-cli -h loud -p 4000 ping; read go']);
  let said = '';
  child.stdout?.on('data', (chunk: Buffer) => (said += chunk.toString('utf8')));
  const over = new Promise((resolve) => child.on('close', resolve));
  await until(() => said === 'PONG\n');
  const [task = ''] = machine.tasks();
  const log = join(machine.stateDir, 'tasks', task, 'services/tasks/loud/service.log');
  await until(() => existsSync(log) && readFileSync(log, 'latin1').includes('Ready to accept'));
  // eslint-disable-next-line no-control-regex
  expect(readFileSync(log, 'latin1')).not.toMatch(/[\u0000-\u0008\u000b-\u001f\u007f]/);
  const shown = await machine.ags(['services', 'logs', task, 'loud']);
  expect(shown.stdout).toContain('Ready to accept');
  child.stdin?.end('go\n');
  await over;
});
