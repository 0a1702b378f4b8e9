// test/gateway/rules.test.ts: the meaning of network rules, and which texts are host names.
import { describe, expect, test } from 'vitest';
import { compileRules } from '../../src/gateway/rules.ts';
import { canonicalHost } from '../../src/protocol/host-name.ts';
import type { NetworkRule } from '../../src/protocol/network.ts';
import { formatRule, parseRule } from '../../src/protocol/network-rule.ts';

function rule(text: string, action: 'allow' | 'deny' = 'allow'): NetworkRule {
  const parsed = parseRule(text);
  if ('problem' in parsed) throw new Error(`${text}: ${parsed.problem}`);
  return { action, ...parsed, origin: 'ags.yaml:1' };
}

const rules = compileRules([
  rule('allowed.test'),
  rule('*.wild.test'),
  rule('ports.test:8443'),
  rule('http://plain.test'),
  rule('GET,HEAD api.test/v1/*'),
  rule('POST api.test/v1/items'),
  rule('mixed.test'),
  rule('DELETE mixed.test/admin/*', 'deny'),
  rule('*.denied.test'),
  rule('bad.denied.test', 'deny'),
  rule('10.1.2.3:5432'),
]);

const connects = (host: string, port = 443): string => {
  const verdict = rules.connect(host, port);
  return verdict.kind === 'allowed' ? (verdict.inspect ? 'inspected' : 'allowed') : verdict.reason;
};

describe('connections', () => {
  test('a rule covers its host on its port', () => {
    expect(connects('allowed.test')).toBe('allowed');
    expect(connects('allowed.test', 22)).toBe('no rule covers allowed.test:22; of this host, port 443 is allowed');
    expect(connects('ports.test', 8443)).toBe('allowed');
    expect(connects('ports.test')).toBe('no rule covers ports.test:443; of this host, port 8443 is allowed');
    expect(connects('plain.test', 80)).toBe('allowed');
    expect(connects('10.1.2.3', 5432)).toBe('allowed');
    expect(connects('10.1.2.3')).toContain('no rule covers');
  });

  test('A45, A46: a host that only looks like an allowed one is another host', () => {
    for (const host of [
      'evilallowed.test',
      'allowedxtest',
      'allowed.test.evil.test',
      'x.allowed.test',
      'test',
      'evil.test',
    ])
      expect(connects(host)).toBe(`no rule covers ${host}:443`);
  });

  test('a wildcard covers every name below it, and not the name itself', () => {
    expect(connects('a.wild.test')).toBe('allowed');
    expect(connects('a.b.wild.test')).toBe('allowed');
    expect(connects('wild.test')).toBe('no rule covers wild.test:443');
    expect(connects('awild.test')).toBe('no rule covers awild.test:443');
  });

  test('a deny beats every allow, on every port', () => {
    expect(connects('ok.denied.test')).toBe('allowed');
    expect(connects('bad.denied.test')).toBe('denied by bad.denied.test (ags.yaml:1)');
    expect(connects('bad.denied.test', 8443)).toBe('denied by bad.denied.test (ags.yaml:1)');
    expect(rules.connect('bad.denied.test', 443)).toMatchObject({ unknown: false });
  });

  test('requests are inspected only where a rule has methods or paths', () => {
    expect(connects('api.test')).toBe('inspected');
    expect(connects('mixed.test')).toBe('inspected');
  });
});

test('requests are decided by method and path', () => {
  const asks = (host: string, method: string, path: string): string => rules.request(host, 443, method, path).kind;
  expect([
    asks('api.test', 'GET', '/v1/items'),
    asks('api.test', 'GET', '/v1/'),
    asks('api.test', 'GET', '/v1'),
    asks('api.test', 'GET', '/v10'),
    asks('api.test', 'POST', '/v1/items'),
    asks('api.test', 'POST', '/v1/items/1'),
    asks('api.test', 'DELETE', '/v1/items'),
    asks('mixed.test', 'DELETE', '/admin/x'),
    asks('mixed.test', 'DELETE', '/other'),
  ]).toEqual(['allowed', 'allowed', 'denied', 'denied', 'allowed', 'denied', 'denied', 'denied', 'allowed']);
});

test('a host is known only if some port of it may be reached', () => {
  expect(
    ['allowed.test', 'x.wild.test', 'plain.test', 'bad.denied.test', 'evil.test'].map((host) => rules.knows(host)),
  ).toEqual([true, true, true, false, false]);
});

describe('host names', () => {
  test('A53, A62, A63: each host has one spelling, and ambiguous texts are no hosts', () => {
    const same = ['Example.COM', 'example.com.', 'EXAMPLE.com'].map((text) => canonicalHost(text)?.host);
    expect(new Set(same)).toEqual(new Set(['example.com']));
    const refused = [
      '127.1',
      '2130706433',
      '0x7f000001',
      '0177.0.0.1',
      '1.2.3',
      '1.2.3.4.',
      '::1',
      '[::1',
      '[::1%lo]',
      '[1.2.3.4]',
      '',
      '.',
      '..',
      'a..b',
      '.a',
      '-a.test',
      'a-.test',
      `${'a'.repeat(64)}.test`,
      `${'a.'.repeat(130)}test`,

      'a b',
      'a\tb',
      'a\0b',
      'a%00b',
      'a%2eb',
      'a\\b',
      'a/b',
      'a@b',
      'a:b',
      'ä.test',
      'a\r\nb',
      'a?b',
      'a#b',
      'a,b',
      '*.a',
    ];
    expect(refused.filter((text) => canonicalHost(text) !== null)).toEqual([]);
    expect(canonicalHost('[0:0:0:0:0:0:0:1]')).toEqual({ kind: 'ip', host: '::1' });
    expect(canonicalHost('[::FFFF:1.2.3.4]')).toEqual({ kind: 'ip', host: '::ffff:102:304' });
  });

  test('every accepted name is the same name to the WHATWG URL parser', () => {
    const letters = [
      'a',
      'B',
      '9',
      '-',
      '_',
      '.',
      '..',
      '0x',
      '%',
      '%2e',
      '@',
      ':',
      '/',
      '\\',
      '[',
      ']',
      ' ',
      '\t',
      'ß',
      '。',
      'xn--',
      '*',
    ];
    let seed = 1;
    const next = (): number => (seed = (seed * 48_271) % 2_147_483_647);
    for (let i = 0; i < 100_000; i++) {
      const text = Array.from({ length: 1 + (next() % 6) }, () => letters[next() % letters.length]).join('');
      const name = canonicalHost(text);
      if (name === null || name.kind === 'ip') continue;
      const url = URL.canParse(`http://${text}/`) ? new URL(`http://${text}/`).hostname.replace(/\.$/, '') : null;
      // A wrong punycode label is no URL, and resolves to nothing either.
      if (url !== null) expect({ text, host: name.host }).toEqual({ text, host: url });
      else expect(text.toLowerCase()).toContain('xn--');
    }
  });

  test('a formatted rule reads like its source', () => {
    const texts = [
      'github.com',
      '*.npmjs.org',
      'example.com:8443',
      'GET,HEAD api.test/v1/*',
      '[::1]:22',
      '10.0.0.1:80',
    ];
    expect(texts.map((text) => formatRule(rule(text)))).toEqual(texts);
  });
});
