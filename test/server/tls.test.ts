// test/server/tls.test.ts: serves other machines with TLS under the configured names, and only to signed-in clients.
import { writeFileSync } from 'node:fs';
import { request } from 'node:https';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createAuthority } from '../../src/gateway/intercept/certificate.ts';
import { createMachine, ONE } from '../harness.ts';
import { firstLine } from './place.ts';

test('another address is served with TLS, and its cookie is sent over TLS only', async () => {
  using machine = createMachine(ONE);
  const [cert, key] = [join(machine.home, 'cert.pem'), join(machine.home, 'key.pem')];
  const authority = createAuthority({ commonName: 'test', days: 2, now: new Date() });
  const leaf = authority.leafFor('ags.test');
  for (const [path, text] of [
    [cert, leaf.cert],
    [key, leaf.key],
  ] as const)
    writeFileSync(path, text, { mode: 0o644 });
  const place = ['--port', '0', '--host', '127.0.0.2', '--name', 'ags.test'];
  const child = machine.start(['serve', ...place, '--cert', cert, '--key', key]);
  try {
    const link = new URL(await firstLine(child));
    expect(link.protocol).toBe('https:');
    const get = (path: string, host: string): Promise<{ status: number; cookie: string }> =>
      new Promise((resolve, reject) => {
        const options = {
          host: '127.0.0.2',
          port: link.port,
          path,
          ca: authority.certificatePem,
          servername: 'ags.test',
        };
        request({ ...options, headers: { host }, agent: false }, (response) => {
          response.resume();
          resolve({ status: response.statusCode ?? 0, cookie: String(response.headers['set-cookie']) });
        })
          .on('error', reject)
          .end();
      });
    expect((await get('/api/tasks', `ags.test:${link.port}`)).status).toBe(401);
    expect((await get('/', `evil.test:${link.port}`)).status).toBe(421);
    expect((await get('/', `localhost:${link.port}`)).status).toBe(421);
    const entered = await get(link.pathname + link.search, `ags.test:${link.port}`);
    expect([entered.status, entered.cookie]).toEqual([303, expect.stringMatching(/; Secure$/)]);
  } finally {
    child.kill('SIGKILL');
  }
});

test('an unreadable or unusable certificate is named in the error', async () => {
  using machine = createMachine(ONE);
  const serve = (cert: string) =>
    machine.ags(['serve', '--host', '127.0.0.2', '--port', '0', '--cert', cert, '--key', '/etc/hosts']);
  expect(await serve('/etc/hosts')).toMatchObject({ code: 2, stderr: expect.stringContaining('cannot be used') });
  expect(await serve('/nowhere.pem')).toMatchObject({
    code: 3,
    stderr: expect.stringContaining('there is no such file'),
  });
});
