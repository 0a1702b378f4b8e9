// test/server/attacks.test.ts: other pages, foreign host names, other users and agents get no access.
// uses: sandbox, curl
import { existsSync, readFileSync, statSync } from 'node:fs';
import { connect } from 'node:net';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { HAS_SANDBOX, ONE } from '../harness.ts';
import { createServerMachine, enter, listen, type Answer, type ServerMachine } from './place.ts';
import { paperTask } from './state.ts';

let machine: ServerMachine;
let cookie: string;
let own: string;

beforeAll(async () => {
  machine = await createServerMachine(ONE);
  cookie = await enter(machine.server);
  own = `http://127.0.0.1:${machine.server.port}`;
  paperTask(machine, 'victim', { live: false });
});
afterAll(() => machine[Symbol.dispose]());

const raw = (
  method: string,
  path: string,
  headers: Record<string, string>,
  body?: string,
): Promise<Answer<{ error?: { code: string } }>> =>
  machine.server.raw(method, path, headers, body) as Promise<Answer<{ error?: { code: string } }>>;
const codeOf = ({ status, json }: Answer<{ error?: { code: string } }>): [number, string | undefined] => [
  status,
  json?.error?.code,
];
const JSON_TYPE = { 'content-type': 'application/json' };
const GOAL = (): string =>
  JSON.stringify({ project: machine.projectId, goals: [{ text: 'say: owned', name: 'owned' }], agents: ['demo'] });

test('a browser with a session can read and act (control: later refusals have their own reason)', async () => {
  expect((await raw('GET', '/api/tasks', { cookie })).status).toBe(200);
  const sent = await raw('POST', '/api/tasks/victim/stop', { cookie, origin: own, ...JSON_TYPE }, '{}');
  expect(sent.json).toEqual({ stopping: false });
});

describe('A127: another page in the same browser', () => {
  test.each([
    ['on another site', () => ({ cookie, origin: 'https://evil.example', ...JSON_TYPE })],
    ['on another port of this machine', () => ({ cookie, origin: 'http://127.0.0.1:9999', ...JSON_TYPE })],
    ['on our port under another name', () => ({ cookie, origin: own.replace('127.0.0.1', 'localhost'), ...JSON_TYPE })],
    ['in a frame without an origin', () => ({ cookie, origin: 'null', ...JSON_TYPE })],
    ['without an origin header', () => ({ cookie, ...JSON_TYPE })],
    ['with a password in its URL', () => ({ cookie, authorization: 'Basic eDp5', ...JSON_TYPE })],
    ['marked same-site by the browser', () => ({ cookie, origin: own, 'sec-fetch-site': 'same-site', ...JSON_TYPE })],
    [
      'with a stolen key',
      () => ({ authorization: `Bearer ${machine.server.key}`, origin: 'http://evil.example', ...JSON_TYPE }),
    ],
  ])('%s cannot start anything', async (_name, headers) => {
    expect(codeOf(await raw('POST', '/api/tasks', headers(), GOAL()))).toEqual([403, 'request.origin']);
    expect(machine.tasks()).toEqual(['victim']);
  });

  test.each(['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x', ''])(
    'a form or plain-text request (%s) is refused, even from our own page',
    async (type) => {
      const headers = { cookie, origin: own, ...(type === '' ? {} : { 'content-type': type }) };
      expect(codeOf(await raw('POST', '/api/tasks', headers, GOAL()))).toEqual([415, 'request.type']);
      expect(machine.tasks()).toEqual(['victim']);
    },
  );

  test('cannot read, listen or open a terminal', async () => {
    const elsewhere = { cookie, origin: 'http://127.0.0.1:9999' };
    expect((await raw('GET', '/api/tasks', { cookie, 'sec-fetch-site': 'cross-site' })).status).toBe(403);
    expect((await raw('GET', '/api/events?topics=tasks', elsewhere)).status).toBe(403);
    await expect(listen(machine.server, elsewhere)).rejects.toThrow('refused: 403');
    await expect(listen(machine.server, { cookie })).rejects.toThrow('refused: 403');
    await expect(listen(machine.server, elsewhere, '/api/tasks/victim/terminal')).rejects.toThrow('refused: 403');
    const ours = await listen(machine.server, { cookie, origin: own });
    ours.socket.terminate();
  });

  test('no response allows other origins', async () => {
    const asked = await raw('OPTIONS', '/api/tasks', { cookie, origin: own, 'access-control-request-method': 'POST' });
    for (const { headers } of [asked, await raw('GET', '/api/tasks', { cookie, origin: own })])
      expect(Object.keys(headers).filter((name) => name.startsWith('access-control'))).toEqual([]);
  });
});

describe('A129: a foreign host name that resolves to this machine', () => {
  test.each(['rebind.evil.example', 'rebind.evil.example:80', '127.0.0.1', '127.0.0.1:1', 'localhost.evil.example'])(
    'Host: %s gets no response, with or without a session',
    async (host) => {
      const { port } = machine.server;
      const name = host.includes(':') ? host : `${host}:${host === '127.0.0.1' ? 1 : port}`;
      for (const path of ['/', '/api/tasks', '/enter?token=x', '/assets/x.js']) {
        const answer = await raw('GET', path, { host: name, cookie });
        expect(codeOf(answer)).toEqual([421, 'request.host']);
        expect(answer.text).not.toContain(new URL(machine.server.link).hostname);
      }
      await expect(listen(machine.server, { host: name, cookie, origin: `http://${name}` })).rejects.toThrow('421');
    },
  );

  test('our own host names get a response', async () => {
    const { hostname } = new URL(machine.server.link);
    for (const name of [hostname, '127.0.0.1', 'localhost', '[::1]'])
      expect((await raw('GET', '/api/tasks', { host: `${name}:${machine.server.port}`, cookie })).status).toBe(200);
  });
});

describe('A130: sign-in', () => {
  test('requests without a session or the key learn nothing', async () => {
    for (const [method, path] of [
      ['GET', '/api/tasks'],
      ['GET', '/api/about'],
      ['GET', '/api/openapi.json'],
      ['GET', '/api/events'],
      ['GET', '/api/tasks/victim/changes'],
      ['POST', '/api/entries'],
      ['DELETE', '/api/tasks/victim'],
    ] as const)
      for (const headers of [
        { origin: own },
        { origin: own, cookie: 'ags=' },
        { origin: own, cookie: 'ags=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA' },
        { authorization: 'Bearer AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA' },
      ])
        expect((await raw(method, path, headers)).status, `${method} ${path}`).toBe(401);
    await expect(listen(machine.server, { origin: own })).rejects.toThrow('refused: 401');
    expect((await raw('GET', `/api/tasks?token=${machine.server.key}`, {})).status).toBe(401);
  });

  test('a link works once, for this server, and leaves no trace', async () => {
    const { pathname, search, host } = new URL(machine.server.link);
    expect((await raw('GET', pathname + search, { host })).status).toBe(403);
    expect((await raw('GET', '/enter?token=', { host })).status).toBe(403);
    const made = await raw('POST', '/api/entries', { authorization: `Bearer ${machine.server.key}` });
    const { path } = made.json as { path: string };
    expect((await raw('HEAD', path, { host })).status).toBe(405);
    expect((await raw('GET', path, { host, 'sec-purpose': 'prefetch;prerender' })).status).toBe(503);
    const entered = await raw('GET', path, { host, referer: 'https://elsewhere.example/' });
    expect([entered.status, entered.headers.location, entered.headers['referrer-policy']]).toEqual([
      303,
      '/',
      'no-referrer',
    ]);
    expect(entered.headers['set-cookie']?.[0]).toMatch(/^ags=[\w-]{43}; HttpOnly; SameSite=Strict; Path=\/; /);
    expect((await raw('GET', path, { host })).status).toBe(403);
    // A browser session cannot create links.
    expect((await raw('POST', '/api/entries', { cookie, origin: own })).status).toBe(404);
  });

  test('no session is issued under a host name that published ports share', async () => {
    const made = await raw('POST', '/api/entries', { authorization: `Bearer ${machine.server.key}` });
    const { path } = made.json as { path: string };
    for (const name of ['127.0.0.1', 'localhost', '[::1]']) {
      const sent = await raw('GET', path, { host: `${name}:${machine.server.port}` });
      expect([sent.status, sent.headers.location, sent.headers['set-cookie']]).toEqual([
        303,
        `${new URL(machine.server.link).origin}${path}`,
        undefined,
      ]);
    }
    const { host } = new URL(machine.server.link);
    const entered = await raw('GET', path, { host });
    expect(entered.headers['set-cookie']?.[0]).toMatch(/^ags=/);
    expect(entered.headers['set-cookie']?.[0]).not.toMatch(/domain/i);
    // Only valid links reveal the host name, which keeps the session from other ports.
    expect(host).toMatch(/^ags-[0-9a-f]{20}\.localhost:/);
    const used = await raw('GET', path, { host: `localhost:${machine.server.port}` });
    expect([used.status, JSON.stringify([used.headers, used.text])]).toEqual([403, expect.not.stringContaining(host)]);
  });

  test('secret files are readable by their owner only, and sessions are stored as hashes', () => {
    const directory = join(machine.stateDir, 'server');
    const mode = (name: string): string => (statSync(join(directory, name)).mode & 0o777).toString(8);
    expect([mode('.'), mode('key'), mode('sessions.json'), mode('projects.json')]).toEqual([
      '700',
      '600',
      '600',
      '600',
    ]);
    const kept = readFileSync(join(directory, 'sessions.json'), 'utf8');
    expect(kept).not.toContain(cookie.slice('ags='.length));
    expect(kept).not.toContain(new URL(machine.server.link).searchParams.get('token'));
  });

  test('a program that listens in place of the server receives no key', async () => {
    const seen: string[] = [];
    const { createServer } = await import('node:http');
    const thief = createServer((request, response) => {
      seen.push(JSON.stringify([request.url?.split('?')[0], request.headers.authorization]));
      response.end(JSON.stringify({ answer: 'f'.repeat(64), path: '/enter?token=x' }));
    });
    await new Promise<void>((resolve) => thief.listen(0, '127.0.0.1', resolve));
    const { port } = thief.address() as { port: number };
    const { code, stderr } = await machine.ags(['web', '--print', '--port', String(port)]);
    thief.close();
    expect([code, stderr]).toEqual([2, expect.stringContaining(`Port ${port} is in use`)]);
    expect(seen).toEqual(['["/api/proof",null]']);
  });
});

test('A131: no response can be framed, sniffed or made to run a script other than our files', async () => {
  const answers = [
    await raw('GET', '/', { cookie }),
    await raw('GET', '/', {}),
    await raw('GET', '/api/tasks', { cookie }),
    await raw('GET', '/api/tasks/victim', {}),
    await raw('GET', '/enter?token=x', { host: new URL(machine.server.link).host }),
    await raw('GET', '/enter?token=x', {}),
    await raw('GET', '/nothing.js', { cookie }),
    await raw('GET', '/', { host: 'evil.example' }),
  ];
  for (const { headers, text } of answers) {
    const policy = String(headers['content-security-policy']);
    expect(policy).toContain("default-src 'none'");
    for (const part of ["frame-ancestors 'none'", "form-action 'none'", "base-uri 'none'"])
      expect(policy).toContain(part);
    // The text-only page has no script and one style, allowed by its hash.
    const of = (what: string): string => new RegExp(`${what}-src ([^;]*)`).exec(policy)?.[1] ?? "'none'";
    expect(of('script')).toMatch(/^'none'$|^'self'( 'wasm-unsafe-eval')?$/);
    expect(of('style')).toMatch(/^'self'$|^'sha256-[\w+/]{43}='$/);
    expect(policy).not.toMatch(/unsafe-inline|'unsafe-eval'|\*|http:/);
    expect(headers['x-content-type-options']).toBe('nosniff');
    expect(headers['x-frame-options']).toBe('DENY');
    expect(headers['cross-origin-resource-policy']).toBe('same-origin');
    expect(headers['cache-control']).toBe('no-store');
    expect(text).not.toMatch(/<script(?![^>]*\bsrc=)|\son\w+=/);
  }
  expect(answers.map(({ status }) => status)).toEqual([200, 401, 200, 401, 403, 403, 200, 421]);
});

test('A125: agent output is JSON data with a type that no browser renders', async () => {
  const evil = '<img src=x onerror=alert(1)>\u202e\u001b]52;c;eA==\u0007';
  const task = paperTask(machine, 'hostile', { live: false, goal: evil });
  task.events.append({ type: 'agent.said', text: evil });
  const answers = [
    await raw('GET', '/api/tasks', { cookie }),
    await raw('GET', '/api/tasks/hostile/events', { cookie }),
  ];
  for (const { headers, text } of answers) {
    expect(headers['content-type']).toBe('application/json; charset=utf-8');
    expect(text).toContain('onerror=alert(1)>');
    expect(text).not.toMatch(/[\u0000-\u001f]/);
  }
  const { text } = await raw('GET', `/${encodeURIComponent('<script>alert(1)</script>')}`, {});
  expect(text).not.toContain('<script>');
});

describe('A133: reachability', () => {
  test('the server listens on loopback only, and on other addresses only with TLS', async () => {
    const others = Object.values(networkInterfaces())
      .flatMap((list) => list ?? [])
      .filter(({ internal, family }) => !internal && family === 'IPv4')
      .map(({ address }) => address);
    for (const host of others) expect(await reaches(host, machine.server.port), host).toBe(false);
    const listening = ['/proc/net/tcp', '/proc/net/tcp6']
      .flatMap((file) => readFileSync(file, 'utf8').split('\n'))
      .filter(
        (line) =>
          line.includes(`:${machine.server.port.toString(16).toUpperCase().padStart(4, '0')} `) && / 0A /.test(line),
      );
    expect(listening.map((line) => line.trim().split(/\s+/)[1]?.split(':')[0])).toEqual(['0100007F']);
    for (const host of ['0.0.0.0', '::', '192.0.2.1']) {
      const refused = await machine.ags(['serve', '--port', '0', '--host', host]);
      expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining('TLS')]);
    }
  });

  test.runIf(HAS_SANDBOX && existsSync('/usr/bin/curl'))(
    'a sandbox cannot reach the server, directly or through its gateway, under any rules',
    async () => {
      const { port } = machine.server;
      const script = `curl -s -m 5 -o /dev/null -w '%{http_code}\\n' --noproxy '*' http://127.0.0.1:${port}/api/proof; curl -s -m 5 -o /dev/null -w '%{http_code}\\n' http://127.0.0.1:${port}/api/proof; curl -s -m 5 -o /dev/null -w '%{http_code}\\n' http://localhost:${port}/; true`;
      const done = await machine.ags([
        'exec',
        '--allow',
        `http://127.0.0.1:${port}`,
        '--allow',
        `http://localhost:${port}`,
        '--',
        'sh',
        '-c',
        script,
      ]);
      expect(
        done.stdout
          .trim()
          .split('\n')
          .filter((code) => !['000', '403', '502'].includes(code)),
        done.stderr,
      ).toEqual([]);
      expect(done.stdout.trim().split('\n')).toHaveLength(3);
    },
  );
});

describe('malformed requests', () => {
  test.each([
    '/assets/../../package.json',
    '/assets/%2e%2e/%2e%2e/package.json',
    '/..%2f..%2fpackage.json',
    '/api/tasks/..%2fvictim',
    '/api/tasks/%2e%2e/events',
    '/api/tasks/victim%00/events',
    '/api/tasks/VICTIM',
    '/api/tasks/vic',
    '/api/tasks/vic/events',
    '/api/tasks/@/events',
    '/api/tasks/victim/changes/0000/files/..',
    '/api/projects/..%2f..%2fetc/branches',
  ])('%s leads nowhere', async (path) => {
    const { status, text } = await raw('GET', path, { cookie });
    // Other paths return the page itself, which shows an unknown address.
    if (path.startsWith('/api/') || path.startsWith('/assets/')) expect([400, 404]).toContain(status);
    expect(text).not.toContain('"devDependencies"');
  });

  test('a body that is too large, not JSON, or of the wrong shape is refused', async () => {
    const headers = { cookie, origin: own, ...JSON_TYPE };
    expect((await raw('POST', '/api/tasks/victim/send', headers, '{"text":')).status).toBe(400);
    expect((await raw('POST', '/api/tasks/victim/send', headers, '{"text":1}')).status).toBe(400);
    expect((await raw('POST', '/api/tasks/victim/send', headers, '{"__proto__":{"text":"x"}}')).status).toBe(400);
    const large = JSON.stringify({ text: 'x'.repeat(5 * 2 ** 20) });
    const outcome = await raw('POST', '/api/tasks/victim/send', headers, large).catch(() => null);
    expect(outcome === null || outcome.status === 413).toBe(true);
  });

  test.each([
    'ext::sh -c touch% /tmp/ags-owned',
    '--upload-pack=touch /tmp/ags-owned',
    'ssh://-oProxyCommand=touch%20x/y',
    '-oProxyCommand=x@host:path',
    'https://host/a b',
    'fd::17',
    '/etc',
    'file::evil',
    'http://plain.example/x.git',
  ])('%s is not cloned', async (url) => {
    const { status } = await raw(
      'POST',
      '/api/projects',
      { cookie, origin: own, ...JSON_TYPE },
      JSON.stringify({ url }),
    );
    expect(status).toBe(400);
  });

  test.each(['/', '/etc', 'relative', '/nowhere'])('%s cannot be a project', async (path) => {
    const body = JSON.stringify({ path });
    const { status } = await raw('POST', '/api/projects', { cookie, origin: own, ...JSON_TYPE }, body);
    expect([400, 404]).toContain(status);
  });

  test('a socket that sends an invalid message is closed', async () => {
    const listener = await listen(machine.server, { cookie, origin: own });
    listener.socket.send('{"do":"shell"}');
    expect(await listener.closed).toBe('not understood');
    const other = await listen(machine.server, { cookie, origin: own });
    other.subscribe('task:../victim', 0);
    expect(await other.until(() => true)).toEqual({ topic: 'task:../victim', type: 'reset', seq: 0, data: null });
    other.socket.terminate();
  });
});

function reaches(host: string, port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host, port, timeout: 3000 });
    const end = (is: boolean): void => {
      socket.destroy();
      resolve(is);
    };
    socket.once('connect', () => end(true));
    socket.once('error', () => end(false));
    socket.once('timeout', () => end(false));
  });
}
