import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { expandRules, PRESETS } from '../../src/config/network/presets.ts';
import { loadConfig } from '../../src/config/load.ts';
import { formatRule, parseRule } from '../../src/protocol/network-rule.ts';
import { createFixture, GiB, type Fixture } from './config-fixture.ts';

let at: Fixture;
beforeEach(() => {
  at = createFixture();
});
afterEach(() => at[Symbol.dispose]());

const FULL = `network:
  mode: record
  defaults: false
  presets: [jetbrains]
  allow:
    - GitHub.com.
    - "*.example.com"
    - example.com:8443
    - http://example.com
    - GET,head api.example.com/v1/*
  deny: ["gist.github.com"]
  addresses: ["10.1.0.0/16", "fd00::/8", 127.0.0.1]
  tcp: ["db=localhost:5432", "cache:6380=10.0.0.5:6379", "v6=[::1]:22"]
  publish: [3000, "8080:3000"]
  upstream:
    - { proxy: "socks5://proxy.corp:1080", auth: { env: PROXY_AUTH }, hosts: ["*.corp"], resolve: there }
    - { proxy: "http://10.0.0.1:3128/" }
  dns: ["127.0.0.1:53", "::1", 10.0.0.2]
  askSeconds: 5
  limits: { connections: 10, perSecond: 20, bytesOut: none }
secrets:
  - { name: github, host: api.github.com, header: Authorization, env: GITHUB_TOKEN, from: { env: GITHUB_TOKEN } }
  - { name: anthropic, host: "api.anthropic.com:8443", header: x-api-key, send: "{}", endpoint: ANTHROPIC_BASE_URL, env: ANTHROPIC_API_KEY, from: { file: ~/.anthropic-key } }
  - { name: c, host: c.test, send: "Bearer {}", from: { command: [pass, show, "a b"] } }
  - { name: d, host: d.test, env: D, from: { keychain: "ags/me" } }
`;

describe('the network section', () => {
  test('is one normalized policy, and each rule names its origin', async () => {
    at.user(FULL);
    const { network, secrets } = await at.load();
    const o = (line: number): string => `${at.input.userConfigFile}:${line}`;
    const rule = { action: 'allow', port: 443, methods: null, path: null };
    expect(network).toEqual({
      mode: 'record',
      presets: ['jetbrains'],
      rules: [
        { ...rule, host: 'github.com', origin: o(6) },
        { ...rule, host: '*.example.com', origin: o(7) },
        { ...rule, host: 'example.com', port: 8443, origin: o(8) },
        { ...rule, host: 'example.com', port: 80, origin: o(9) },
        { ...rule, host: 'api.example.com', methods: ['GET', 'HEAD'], path: '/v1/*', origin: o(10) },
        { ...rule, action: 'deny', host: 'gist.github.com', origin: o(11) },
      ],
      addresses: ['10.1.0.0/16', 'fd00::/8', '127.0.0.1/32'],
      tcp: [
        { name: 'db', port: 5432, host: 'localhost', hostPort: 5432, origin: o(13) },
        { name: 'cache', port: 6380, host: '10.0.0.5', hostPort: 6379, origin: o(13) },
        { name: 'v6', port: 22, host: '::1', hostPort: 22, origin: o(13) },
      ],
      publish: [
        { inside: 3000, outside: 3000 },
        { inside: 3000, outside: 8080 },
      ],
      upstreams: [
        {
          kind: 'socks5',
          host: 'proxy.corp',
          port: 1080,
          auth: { env: 'PROXY_AUTH' },
          hosts: ['*.corp'],
          resolve: 'there',
          origin: o(16),
        },
        { kind: 'http', host: '10.0.0.1', port: 3128, auth: null, hosts: null, resolve: 'here', origin: o(17) },
      ],
      dns: ['127.0.0.1:53', '[::1]:53', '10.0.0.2:53'],
      limits: { connections: 10, perSecond: 20, bytesOut: null },
      askSeconds: 5,
    });
    const secret = { port: 443, header: 'authorization', send: null, env: null, endpoint: null };
    expect(secrets).toEqual([
      {
        ...secret,
        name: 'github',
        host: 'api.github.com',
        env: 'GITHUB_TOKEN',
        from: { env: 'GITHUB_TOKEN' },
        origin: o(22),
      },
      {
        name: 'anthropic',
        host: 'api.anthropic.com',
        port: 8443,
        header: 'x-api-key',
        send: '{}',
        env: 'ANTHROPIC_API_KEY',
        endpoint: 'ANTHROPIC_BASE_URL',
        from: { file: `${at.input.home}/.anthropic-key` },
        origin: o(23),
      },
      {
        ...secret,
        name: 'c',
        host: 'c.test',
        send: 'Bearer {}',
        from: { command: ['pass', 'show', 'a b'] },
        origin: o(24),
      },
      { ...secret, name: 'd', host: 'd.test', env: 'D', from: { keychain: 'ags/me' }, origin: o(25) },
    ]);
  });

  test('is the same when it is missing, empty, or made of empty keys', async () => {
    const untouched = (await at.load()).network;
    at.user('network: {}\n');
    at.project('network:\n  allow:\n');
    const { network, origins } = await at.load({ allow: [], deny: [], tcp: [], publish: [] });
    expect(network).toEqual(untouched);
    expect(origins['network.limits.bytesOut']).toBe('built-in');
  });

  test('flags come last and name themselves as origin', async () => {
    at.user('network: { mode: record, allow: [a.test], limits: { bytesOut: 1g } }\n');
    at.project('network: { mode: off, deny: [b.test, b.test] }\n');
    const { network, origins } = await at.load({
      network: 'on',
      allow: ['a.test', 'c.test'],
      deny: ['d.test'],
      tcp: ['db=localhost:1'],
      publish: ['3000', '1:2'],
    });
    expect(network.rules.map(({ action, host, origin }) => [action, host, origin])).toEqual([
      ['allow', 'a.test', `${at.input.userConfigFile}:1`],
      ['allow', 'c.test', '--allow'],
      ['deny', 'b.test', 'ags.yaml:1'],
      ['deny', 'd.test', '--deny'],
    ]);
    expect([network.mode, origins['network.mode'], network.limits.bytesOut]).toEqual(['on', '--network', GiB]);
    expect([network.tcp[0]?.origin, network.publish]).toEqual([
      '--tcp',
      [
        { inside: 3000, outside: 3000 },
        { inside: 2, outside: 1 },
      ],
    ]);
  });

  test.each([
    [{ network: 'yes' }, '--network: expected on, off or record, found "yes"'],
    [{ allow: ['*.com'] }, '--allow: "*.com": *.com is too wide; name at least two parts after the star'],
    [{ deny: ['a b c'] }, '--deny: "a b c": it is not a host'],
    [{ tcp: ['db'] }, '--tcp: "db": it has no "=" between name and target'],
    [{ publish: ['70000'] }, '--publish: "70000": 70000 is not a port'],
  ])('the flag %j is refused', async (flags, message) => {
    expect(await at.problem(flags)).toEqual({ code: 'usage.invalid', message });
  });

  test.each([
    ['network: { mode: maybe }', '1:18: network.mode: expected on, off or record, found "maybe"'],
    ['network: { alow: [] }', '1:12: unknown key "alow" in network (did you mean "allow"?)'],
    [
      'network: { presets: [jetbrain] }',
      '1:22: network.presets[0]: unknown built-in list "jetbrain" (did you mean "jetbrains"?)',
    ],
    [
      'network: { presets: [default] }',
      `1:22: network.presets[0]: unknown built-in list "default"; known lists: ${Object.keys(PRESETS).join(', ')}`,
    ],
    ['network:\n  allow: ["https://"]', '2:11: network.allow[0]: "https://": it is not a host'],
    [
      'network:\n  allow: [a.test, 0x7f.1]',
      '2:19: network.allow[1]: "0x7f.1": 0x7f.1 is not the name or address of a host',
    ],
    [
      'network:\n  allow: ["FETCH a.test"]',
      '2:11: network.allow[0]: "FETCH a.test": FETCH is not an HTTP method (GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS)',
    ],
    [
      'network: { addresses: [10.0.0.1/8] }',
      '1:24: network.addresses[0]: "10.0.0.1/8": it has bits set beyond its prefix of /8',
    ],
    [
      'network: { addresses: [0.0.0.0/0] }',
      '1:24: network.addresses[0]: "0.0.0.0/0": /0 is too wide; the widest is /8',
    ],
    [
      'network: { addresses: ["fd00::1/8"] }',
      '1:24: network.addresses[0]: "fd00::1/8": it has bits set beyond its prefix of /8',
    ],
    [
      'network: { addresses: [10.0.0.0/33] }',
      '1:24: network.addresses[0]: "10.0.0.0/33": /33 is longer than the address',
    ],
    ['network: { addresses: [corp] }', '1:24: network.addresses[0]: "corp": it is not an address with a prefix length'],
    [
      'network: { tcp: [localhost=a.test:1] }',
      '1:18: network.tcp[0]: "localhost=a.test:1": localhost is the sandbox itself',
    ],
    ['network: { tcp: [10.0.0.1=a.test:1] }', '1:18: network.tcp[0]: "10.0.0.1=a.test:1": 10.0.0.1 is not one name'],
    ['network: { tcp: [db=a.test] }', '1:18: network.tcp[0]: "db=a.test": a.test has no port'],
    ['network: { tcp: ["db=*.a.test:1"] }', '1:18: network.tcp[0]: "db=*.a.test:1": *.a.test:1 is more than one host'],
    [
      'network:\n  tcp:\n    - db=a.test:1\n    - DB:2=b.test:1',
      '4:7: network.tcp[1]: "db" is already granted at ags.yaml:3',
    ],
    ['network: { publish: [0] }', '1:22: network.publish[0]: expected a whole number from 1 to 65535, found 0'],
    ['network: { publish: ["1:2:3"] }', '1:22: network.publish[0]: "1:2:3": it is not a port'],
    [
      'network: { upstream: [{ proxy: "ftp://a:1" }] }',
      '1:32: network.upstream[0].proxy: "ftp://a:1": it does not begin with http:// or socks5://',
    ],
    [
      'network: { upstream: [{ proxy: "http://me:pw@a:1" }] }',
      '1:32: network.upstream[0].proxy: "http://me:pw@a:1": it must not contain a password; use "auth"',
    ],
    [
      'network: { upstream: [{ proxy: "http://a:1", auth: { env: A, file: /b } }] }',
      '1:52: network.upstream[0].auth: env and file exclude each other',
    ],
    ['network: { dns: [dns.test] }', '1:18: network.dns[0]: "dns.test": it is not an address'],
    [
      'network: { limits: { bytesOut: 1k } }',
      '1:32: network.limits.bytesOut: "1k" is too little for one request; the minimum is 64k',
    ],
    [
      'network: { limits: { connections: 0 } }',
      '1:35: network.limits.connections: expected a whole number from 1 to 65535, found 0',
    ],
    [
      'secrets: [{ name: a, host: "*.a.test", env: A, from: { env: A } }]',
      '1:28: secrets[0].host: "*.a.test": a secret is for one host',
    ],
    ['secrets: [{ name: a, host: a.test, env: A, from: {} }]', '1:50: secrets[0].from: it has no source for the value'],
    [
      'secrets: [{ name: a, host: a.test, from: { env: A } }]',
      '1:11: secrets[0]: it is never used: it has neither "env" nor "send"',
    ],
    [
      'secrets: [{ name: a, host: a.test, env: A, header: Host, from: { env: A } }]',
      '1:52: secrets[0].header: "host" is a header of the connection and cannot carry a secret',
    ],
    [
      'secrets: [{ name: a, host: a.test, send: "Bearer", from: { env: A } }]',
      '1:42: secrets[0].send: expected a text with {} where the value goes, such as "Bearer {}", found "Bearer"',
    ],
    [
      'secrets: [{ name: a, host: a.test, env: A, from: { command: [] } }]',
      '1:61: secrets[0].from.command: expected a program and its arguments, found a list',
    ],
    [
      'secrets:\n - { name: a, host: a.test, env: A, from: { env: A } }\n - { name: a, host: b.test, env: B, from: { env: A } }',
      '3:4: secrets[1]: another secret is named "a", at ags.yaml:2',
    ],
    [
      'secrets:\n - { name: a, host: a.test, env: A, from: { env: A } }\n - { name: b, host: b.test, endpoint: A, send: "{}", from: { env: A } }',
      '3:4: secrets[1]: another secret uses the variable "A", at ags.yaml:2',
    ],
  ])('%j is refused with its line', async (text, message) => {
    at.project(`${text}\n`);
    expect(await at.problem()).toEqual({ code: 'config.invalid', message: `ags.yaml:${message}` });
  });
});

describe("the requests of a project's file", () => {
  test('list every widening value in full', async () => {
    at.project(FULL.replace('defaults: false', 'defaults: true'));
    expect(await at.asks()).toEqual([
      'ags.yaml:2: network.mode: record, where you have on',
      'ags.yaml:4: network.presets: reach the built-in list "jetbrains"',
      'ags.yaml:6: network.allow: reach github.com',
      'ags.yaml:7: network.allow: reach *.example.com',
      'ags.yaml:8: network.allow: reach example.com:8443',
      'ags.yaml:9: network.allow: reach example.com:80',
      'ags.yaml:10: network.allow: reach GET,HEAD api.example.com/v1/*',
      'ags.yaml:12: network.addresses: let names lead to 10.1.0.0/16',
      'ags.yaml:12: network.addresses: let names lead to fd00::/8',
      'ags.yaml:12: network.addresses: let names lead to 127.0.0.1/32',
      'ags.yaml:13: network.tcp: reach db=localhost:5432',
      'ags.yaml:13: network.tcp: reach cache:6380=10.0.0.5:6379',
      'ags.yaml:13: network.tcp: reach v6=[::1]:22',
      'ags.yaml:14: network.publish: open 3000 on your loopback',
      'ags.yaml:14: network.publish: open 8080:3000 on your loopback',
      'ags.yaml:16: network.upstream: go through socks5://proxy.corp:1080 for *.corp, which looks names up, with PROXY_AUTH of your environment',
      'ags.yaml:17: network.upstream: go through http://10.0.0.1:3128',
      'ags.yaml:18: network.dns: ask the name server 127.0.0.1:53',
      'ags.yaml:18: network.dns: ask the name server [::1]:53',
      'ags.yaml:18: network.dns: ask the name server 10.0.0.2:53',
      'ags.yaml:20: network.limits.bytesOut: use none, above your 10g',
      'ags.yaml:22: secrets: send GITHUB_TOKEN of your environment to api.github.com:443 as authorization',
      `ags.yaml:23: secrets: send the content of ${at.input.home}/.anthropic-key to api.anthropic.com:8443 as x-api-key`,
      'ags.yaml:24: secrets: send what this command prints, run on this machine: ["pass","show","a b"] to c.test:443 as authorization: Bearer {}',
      'ags.yaml:25: secrets: send the entry ags/me of your keychain to d.test:443 as authorization',
    ]);
  });

  test('are empty when the file only narrows', async () => {
    at.project(
      'network: { mode: off, defaults: false, deny: [github.com], askSeconds: 300, limits: { connections: 1, perSecond: 1, bytesOut: 1m } }\n',
    );
    expect(await at.asks()).toEqual([]);
  });

  test('exclude rights that the user grants to all projects in any file', async () => {
    at.user(FULL);
    at.project(`# one line further down\n${FULL}`);
    expect(await at.asks()).toEqual([]);
    expect((await at.load()).secrets.map(({ origin }) => origin)).toEqual(
      [22, 23, 24, 25].map((line) => `${at.input.userConfigFile}:${line}`),
    );
  });

  test('include features that the user turned off', async () => {
    at.user('network: { mode: off, defaults: false }\n');
    at.project('network: { mode: on, defaults: true }\n');
    expect(await at.asks()).toEqual([
      'ags.yaml:1: network.mode: on, where you have off',
      'ags.yaml:1: network.defaults: reach the built-in default list',
    ]);
  });

  test('show a long command in full', async () => {
    const long = 'x'.repeat(5000);
    at.project(
      JSON.stringify({
        secrets: [{ name: 'a', host: 'a.test', env: 'A', from: { command: ['sh', '-c', `${long}; rm -rf ~`] } }],
      }),
    );
    expect((await at.asks())[0]).toContain(`["sh","-c","${long}; rm -rf ~"] to a.test:443`);
  });
});

describe('built-in lists', () => {
  test('every default rule is valid, in one list only, and consists of a host and a port', () => {
    const rules = Object.entries(PRESETS).flatMap(([name, preset]) =>
      preset.rules.map((text) => ({ name, preset, text })),
    );
    expect(rules.filter(({ text }) => 'problem' in parseRule(text))).toEqual([]);
    expect(rules.filter(({ text }, i) => rules.findIndex((other) => other.text === text) !== i)).toEqual([]);
    // A rule with a path makes the gateway decrypt every connection to that host.
    expect(
      rules.filter(({ preset, text }) => preset.default && /\/(?!\/)./.test(text.replace(/^http:\/\//, ''))),
    ).toEqual([]);
    expect(Object.keys(PRESETS).filter((name) => !/^[a-z]+$/.test(name) || name === 'default')).toEqual([]);
  });

  test('the default list comes first, then named lists, then rules, each with its origin', async () => {
    const own = { ...(await at.load({ allow: ['a.test'] })).network, presets: ['default', 'docker', 'npm'] };
    const rules = expandRules(own);
    const origins = [...new Set(rules.map(({ origin }) => origin))];
    expect(origins).toEqual([
      ...Object.entries(PRESETS)
        .filter(([, { default: on }]) => on)
        .map(([name]) => `built-in ${name}`),
      'built-in docker',
      '--allow',
    ]);
    expect(rules.find(({ origin }) => origin === 'built-in npm')).toEqual({
      action: 'allow',
      host: '*.npmjs.org',
      port: 443,
      methods: null,
      path: null,
      origin: 'built-in npm',
    });
    expect(expandRules({ presets: [], rules: [] })).toEqual([]);
  });

  test('contain no telemetry host and no upload host', () => {
    const open =
      /\bgist\b|paste|transfer|webhook|ngrok|sentry|telemetry|analytics|segment|statsig|datadog|mixpanel|events?\./;
    expect(Object.values(PRESETS).flatMap(({ rules }) => rules.filter((rule) => open.test(rule)))).toEqual([]);
  });
});

describe('AGS_ALLOW', () => {
  const withVariable = async (allowVariable: string): Promise<unknown> =>
    (await loadConfig({ ...at.input, allowVariable })).network.rules.map(
      (rule) => `${formatRule(rule)} ${rule.origin}`,
    );

  test('allows hosts, and names itself as their origin', async () => {
    expect(await withVariable('a.example, *.b.example:8443\nhttp://c.example,')).toEqual([
      'a.example AGS_ALLOW',
      '*.b.example:8443 AGS_ALLOW',
      'c.example:80 AGS_ALLOW',
    ]);
    expect(await withVariable(' , ')).toEqual([]);
  });

  test('refuses what is no host, and methods and paths', async () => {
    for (const wrong of [
      'a.example,*.com',
      'GET a.example',
      'GET,HEAD a.example/v1',
      'http://a.example/v1',
      'a_b/..',
      'x:99999',
    ])
      await expect(withVariable(wrong), wrong).rejects.toMatchObject({
        code: 'usage.invalid',
        message: expect.stringMatching(/^AGS_ALLOW: "/) as string,
        hint: expect.any(String) as string,
      });
  });

  test('needs no approval, and gives a project nothing that it asks for', async () => {
    at.project('network:\n  allow: [a.example]\n');
    await expect(withVariable('a.example')).rejects.toMatchObject({ code: 'config.untrusted' });
    at.project('network:\n  deny: [a.example]\n');
    expect(await withVariable('a.example')).toEqual(['a.example AGS_ALLOW', 'a.example ags.yaml:2']);
  });
});
