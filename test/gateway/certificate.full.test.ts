// The authority of a sandbox, verified by OpenSSL, Node, curl and Java.
// uses: openssl, curl, java
import { execFile } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { connect, createServer, type TLSSocket } from 'node:tls';
import { afterAll, expect, test } from 'vitest';
import { type Authority, createAuthority } from '../../src/gateway/intercept/certificate.ts';
import {
  combinedBundle,
  javaTrustOptions,
  javaTrustStore,
  trustEnvironment,
} from '../../src/gateway/intercept/trust-store.ts';

const run = promisify(execFile);
const directory = mkdtempSync(join(tmpdir(), 'ags-certificate-'));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

const authority = createAuthority({ commonName: 'ags sandbox 1', days: 30, now: new Date() });
const caFile = file('ca.pem', authority.certificatePem);

test.each(['example.com', '127.0.0.1', '::1', '2001:db8::5:0:1', `${'a'.repeat(60)}.${'b'.repeat(60)}.test`])(
  'OpenSSL accepts the certificate of %s, strictly',
  async (host) => {
    const leaf = file('leaf.pem', authority.leafFor(host).cert);
    const check = host.includes(':') || /^[0-9.]+$/.test(host) ? '-verify_ip' : '-verify_hostname';
    const args = ['verify', '-x509_strict', '-purpose', 'sslserver', '-CAfile', caFile];
    expect((await run('openssl', [...args, check, host, leaf])).stdout).toBe(`${leaf}: OK\n`);
    const other = check === '-verify_ip' ? '10.0.0.1' : 'www.example.com';
    await expect(run('openssl', [...args, check, other, leaf])).rejects.toThrow(/mismatch/);
  },
);

test('the authority signs server certificates only, within its own lifetime, and no authorities below it', () => {
  const now = new Date('2049-12-20T10:00:00Z');
  const late = createAuthority({ commonName: 'ags', days: 30, now });
  const ca = new X509Certificate(late.certificatePem);
  const leaf = new X509Certificate(late.leafFor('example.com').cert);
  expect([ca.ca, ca.validFrom, ca.validTo]).toEqual([true, 'Dec 19 10:00:00 2049 GMT', 'Jan 19 10:00:00 2050 GMT']);
  expect([leaf.ca, leaf.validTo, leaf.subjectAltName, leaf.keyUsage, leaf.verify(ca.publicKey)]).toEqual([
    false,
    'Jan 19 10:00:00 2050 GMT',
    'DNS:example.com',
    ['1.3.6.1.5.5.7.3.1'],
    true,
  ]);
  expect(leaf.serialNumber).not.toBe(ca.serialNumber);
  expect(late.leafFor('example.com')).toBe(late.leafFor('example.com'));
});

test('Node and curl accept its certificate for its host only', async () => {
  await using server = await serve(authority, 'localhost');
  const { port } = server;
  const talk = (ca: string, servername: string): Promise<string> =>
    new Promise((resolve) => {
      const socket = connect({ port, host: '127.0.0.1', servername, ca }, () => {
        resolve(socket.getProtocol() ?? '');
        socket.destroy();
      });
      socket.on('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? ''));
    });
  expect(await talk(authority.certificatePem, 'localhost')).toBe('TLSv1.3');
  expect(await talk(authority.certificatePem, 'example.com')).toBe('ERR_TLS_CERT_ALTNAME_INVALID');
  const stranger = createAuthority({ commonName: 'ags sandbox 1', days: 30, now: new Date() });
  expect(await talk(stranger.certificatePem, 'localhost')).not.toMatch(/^TLS/);
  const { stdout } = await run('curl', ['-sS', '--noproxy', '*', '--cacert', caFile, `https://localhost:${port}/`]);
  expect(stdout).toBe('ok');
});

test('programs find the bundle by their environment variables', () => {
  expect(combinedBundle('a', 'b')).toBe('a\nb\n');
  expect(combinedBundle('', 'b\n')).toBe('b\n');
  expect(trustEnvironment({ bundle: '/b.pem', ca: '/ca.pem', java: '/j' })).toMatchObject({
    NODE_EXTRA_CA_CERTS: '/ca.pem',
    SSL_CERT_FILE: '/b.pem',
    npm_config_cafile: '/b.pem',
  });
});

const java = existsSync('/usr/bin/keytool') && existsSync('/usr/bin/java');

test.skipIf(!java)('Java reads the trust store and trusts its certificates', { timeout: 120_000 }, async () => {
  const roots = '/etc/ssl/certs/ca-certificates.crt';
  const system = existsSync(roots) ? readFileSync(roots, 'utf8') : '';
  const store = file(
    'trust.jks',
    javaTrustStore([system, authority.certificatePem, authority.certificatePem], 'changeit'),
  );
  const count = system.split('BEGIN CERTIFICATE').length;
  const listed = await run('keytool', ['-list', '-keystore', store, '-storepass', 'changeit'], { maxBuffer: 1e8 });
  expect(listed.stdout).toMatch(new RegExp(`contains ${count} entr`));
  await expect(run('keytool', ['-list', '-keystore', store, '-storepass', 'other'])).rejects.toThrow();

  await using server = await serve(authority, 'localhost');
  const source = file('Get.java', GET);
  const options = javaTrustOptions({ bundle: '', ca: '', java: store }, 'changeit');
  const url = `https://localhost:${server.port}/`;
  const works = await run('java', [...options, source, url]).catch((error: Error) => ({ stdout: error.message }));
  // Java may be installed without its compiler.
  if (/jdk.compiler|java.lang.module/i.test(works.stdout)) return;
  expect(works.stdout).toBe('200 ok\n');
  await expect(run('java', [source, url])).rejects.toThrow(/PKIX|certification path/);
});

const GET = `import java.net.*;
public class Get {
  public static void main(String[] args) throws Exception {
    HttpURLConnection c = (HttpURLConnection) new URL(args[0]).openConnection(Proxy.NO_PROXY);
    System.out.println(c.getResponseCode() + " " + new String(c.getInputStream().readAllBytes()));
  }
}
`;

function file(name: string, content: string | Buffer): string {
  writeFileSync(join(directory, name), content);
  return join(directory, name);
}

async function serve(issuer: Authority, host: string): Promise<AsyncDisposable & { port: number }> {
  const server = createServer({ ...issuer.leafFor(host) }, (socket: TLSSocket) => {
    socket.on('error', () => undefined);
    socket.on('data', () => socket.end('HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok'));
  });
  server.on('tlsClientError', () => undefined);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    [Symbol.asyncDispose]: async () => {
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
