// Secrets reach the verified host only, and do not come back in answers (attacks A137, A138, A139).
import { gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { echo, ok, outside, replies, secret, stage } from './intercept-fixture.ts';
import { createAuthority } from '../../src/gateway/intercept/certificate.ts';

const REAL = secret().value;
const PLACEHOLDER = secret().placeholder;
const STARS = '*'.repeat(REAL.length);

function get(fields: string, path = '/'): string {
  return `GET ${path} HTTP/1.1\r\nHost: origin.test\r\n${fields}\r\n`;
}

function basic(pair: string): string {
  return Buffer.from(pair).toString('base64');
}

describe('a placeholder', () => {
  test('is replaced in its own header', async () => {
    await using scene = await stage(echo, { secrets: [secret()] });
    const client = await scene.client();
    await client.ask(get(`AUTHORIZATION: Bearer ${PLACEHOLDER}\r\n`));
    expect(scene.received()).toBe(
      `GET / HTTP/1.1\r\nHost: origin.test\r\nAUTHORIZATION: Bearer ${REAL}\r\nAccept-Encoding: identity\r\nConnection: keep-alive\r\n\r\n`,
    );
  });

  test('is replaced inside basic authentication', async () => {
    await using scene = await stage(echo, { secrets: [secret()] });
    const client = await scene.client();
    const { body } = await client.ask(get(`Authorization: Basic ${basic(`x-token:${PLACEHOLDER}`)}\r\n`));
    expect(scene.received()).toContain(`Authorization: Basic ${basic(`x-token:${REAL}`)}\r\n`);
    expect(body).toMatch(/Authorization: Basic \*+=*\r\n/);
  });

  test('is left alone in the path, the query, the body and every other header', async () => {
    await using scene = await stage(echo, { secrets: [secret()] });
    const client = await scene.client();
    const fields = `X-Authorization: ${PLACEHOLDER}\r\nCookie: a=${PLACEHOLDER}\r\n`;
    const body = `{"a":"${PLACEHOLDER}"}`;
    await client.ask(
      `POST /${PLACEHOLDER}?${PLACEHOLDER} HTTP/1.1\r\nHost: origin.test\r\n${fields}Content-Length: ${body.length}\r\n\r\n${body}`,
    );
    expect(scene.received().split(PLACEHOLDER)).toHaveLength(6);
    expect(scene.received()).not.toContain(REAL);
  });

  test('is left alone on a host that has no such secret', async () => {
    await using scene = await stage(echo);
    const client = await scene.client();
    await client.ask(get(`Authorization: Bearer ${PLACEHOLDER}\r\n`));
    expect(scene.received()).toContain(PLACEHOLDER);
  });

  test('whose value contains "$&" is replaced literally', async () => {
    const value = "a$&b$'c";
    await using scene = await stage(echo, {
      secrets: [secret({ value }), secret({ value, header: 'x-key', send: '{}' })],
    });
    const client = await scene.client();
    await client.ask(get(`Authorization: ${PLACEHOLDER}\r\n`));
    expect(scene.received()).toContain(`Authorization: ${value}\r\nx-key: ${value}\r\n`);
  });
});

describe('a header that is always set', () => {
  const secrets = [secret({ header: 'x-api-key', send: 'key {}' })];
  test('replaces everything the client wrote there', async () => {
    await using scene = await stage(echo, { secrets });
    const client = await scene.client();
    await client.ask(get('X-Api-Key: mine\r\nx-api-key: too\r\n'));
    await client.ask(get('X-Api-Key: mine\r\nConnection: x-api-key\r\n'));
    const sent = `x-api-key: key ${REAL}`;
    expect(scene.received().match(/x-api-key.*/gi)).toEqual([sent, sent]);
  });

  test('is set on requests to a loopback endpoint', async () => {
    await using scene = await stage(echo, { secrets, scheme: 'http', basePath: '/k' });
    const client = await scene.client();
    const { body } = await client.ask(get('', '/k/x'));
    expect(scene.received()).toContain(`x-api-key: key ${REAL}\r\n`);
    expect(body).toContain(`x-api-key: key ${STARS}`);
  });

  test.each(['a\r\nX-Evil: 1', 'a\nb', 'a\0', '', '\u0100'])('is not sent if its value is %j', async (value) => {
    await using scene = await stage(echo, { secrets: [secret({ value, send: '{}' })] });
    const client = await scene.client();
    expect(await client.ask(get(''))).toMatchObject({
      status: 502,
      body: expect.stringContaining('the secret key is') as string,
    });
    expect(scene.received()).toBe('');
  });
});

test('no secret goes to an origin that cannot prove its identity', async () => {
  const issuer = createAuthority({ commonName: 'test roots', days: 2, now: new Date() });
  for (const options of [{ issuer }, { certificateFor: 'evil.test' }]) {
    await using scene = await stage(echo, { ...options, secrets: [secret({ send: '{}' })] });
    const client = await scene.client();
    expect((await client.ask(get(''))).status).toBe(502);
    expect(scene.received()).toBe('');
  }
  expect(outside.certificatePem).not.toBe(issuer.certificatePem);
});

describe('an origin that shows the secret', () => {
  const secrets = [secret({ send: 'Bearer {}' })];

  test('in its body and in its head shows stars', async () => {
    await using scene = await stage(
      replies((head) =>
        ok(`you sent ${head}`, `X-Echo: ${/Bearer \S+/.exec(head)?.[0]}\r\nContent-Type: text/plain\r\n`),
      ),
      { secrets },
    );
    const client = await scene.client();
    const { head, body } = await client.ask(get('Accept-Encoding: gzip, br\r\n'));
    expect(head).toContain(`X-Echo: Bearer ${STARS}\r\n`);
    expect(body).toContain(`authorization: Bearer ${STARS}\r\n`);
    expect(scene.received()).toMatch(/\r\nAccept-Encoding: identity\r\n/);
    expect(scene.received()).not.toContain('gzip');
  });

  test('byte by byte, in its own chunks, shows stars, and other events are not delayed', async () => {
    await using scene = await stage(
      replies(() => 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-T\r\n\r\n'),
      { secrets },
    );
    const client = await scene.client();
    client.send(get(''));
    await client.until(/\r\n\r\n$/);
    const [origin] = scene.origins;
    origin?.write('7\r\nevent 1\r\n');
    expect(await client.until(/event 1\r\n$/)).toBe('7\r\nevent 1\r\n');
    for (const letter of `<${REAL}>`) {
      origin?.write(`1\r\n${letter}\r\n`);
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
    origin?.write(`0\r\nX-T: ${REAL}\r\n\r\n`);
    const got = await client.until(/\r\n0\r\n\r\n$/);
    expect(dechunk(got)).toBe(`<${STARS}>`);
    expect(got).not.toContain('X-T');
  });

  test('cut in any two pieces shows stars', async () => {
    const text = `a ${REAL} b`;
    for (let cut = 1; cut < text.length; cut += 5) {
      await using scene = await stage(
        replies(
          (_head, socket) => (
            setTimeout(() => socket.write(text.slice(cut)), 15),
            `HTTP/1.1 200 OK\r\nContent-Length: ${text.length}\r\n\r\n${text.slice(0, cut)}`
          ),
        ),
        { secrets },
      );
      const client = await scene.client();
      expect((await client.ask(get(''))).body).toBe(`a ${STARS} b`);
    }
  });

  test('until it closes shows stars', async () => {
    await using scene = await stage(
      replies(
        (_head, socket) => (
          setTimeout(() => socket.end(`${REAL.slice(5)} sk-re`), 15),
          `HTTP/1.1 200 OK\r\n\r\n${REAL.slice(0, 5)}`
        ),
      ),
      { secrets },
    );
    const client = await scene.client();
    client.send(get(''));
    expect(await client.rest()).toMatch(new RegExp(`\r\n\r\n[*]{${REAL.length}} sk-re$`));
  });

  test('as JSON or in a URL shows stars', async () => {
    const value = 'p"a\\ss w/rd';
    await using scene = await stage(
      replies(() => ok(`${JSON.stringify({ value })} ${encodeURIComponent(value)}`)),
      {
        secrets: [secret({ value, send: '{}' })],
      },
    );
    const client = await scene.client();
    expect((await client.ask(get(''))).body).toMatch(/^\{"value":"\*+"\} \*+$/);
  });

  test('in answer to a later request without it shows stars', async () => {
    await using scene = await stage(
      replies(() => ok(REAL)),
      { secrets: [secret()] },
    );
    const client = await scene.client();
    expect((await client.ask(get(''))).body).toBe(STARS);
  });

  test('in an informational response shows stars', async () => {
    await using scene = await stage(
      replies(() => `HTTP/1.1 103 Early Hints\r\nLink: ${REAL}\r\n\r\n${ok('x')}`),
      { secrets },
    );
    const client = await scene.client();
    client.send(get(''));
    expect(await client.until(/x$/)).toContain(`Link: ${STARS}\r\n`);
  });

  test('in compressed form is not passed on', async () => {
    await using scene = await stage(
      replies(() => ok(gzipSync(REAL).toString('latin1'), 'Content-Encoding: gzip\r\n')),
      { secrets },
    );
    const client = await scene.client();
    expect(await client.ask(get(''))).toMatchObject({
      status: 502,
      body: expect.stringContaining('compressed') as string,
    });
  });

  test('over a WebSocket shows stars, and cannot compress', async () => {
    await using scene = await stage(
      replies(
        () =>
          `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n\u0081\u0012${REAL}`,
      ),
      { secrets },
    );
    const client = await scene.client();
    client.send(get('Connection: upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Extensions: permessage-deflate\r\n'));
    expect(await client.until(/\u0012.+/s)).toMatch(new RegExp(`\u0081\u0012[*]{${REAL.length}}$`));
    expect(scene.received()).not.toMatch(/deflate/);
  });

  test('by TRACE is not asked at all', async () => {
    await using scene = await stage(echo, { secrets });
    const client = await scene.client();
    expect((await client.ask(get('').replace('GET', 'TRACE'))).status).toBe(405);
    expect(scene.received()).toBe('');
  });
});

function dechunk(text: string): string {
  let out = '';
  for (let rest = text; rest !== '';) {
    const size = Number.parseInt(rest, 16);
    const start = rest.indexOf('\r\n') + 2;
    out += rest.slice(start, start + size);
    rest = rest.slice(start + size + 2);
  }
  return out;
}
