// test/gateway/address.test.ts: the gateway refuses to dial special addresses unless the user granted them.
import { expect, test } from 'vitest';
import { createGuard, parseBlock } from '../../src/gateway/dial/address.ts';

const guard = createGuard({ granted: [], ownAddresses: () => ['151.101.2.9', '2a01:4f8::7%eth0', '2002:808:808::9'] });

test('every class of special address is refused by its name', () => {
  const asked = {
    '0.0.0.0': 'an address of this machine',
    '0.255.255.255': 'an address of this machine',
    '10.0.0.1': 'a private address',
    '100.64.0.1': 'an address inside the network of a provider',
    '100.127.255.255': 'an address inside the network of a provider',
    '127.0.0.1': 'loopback',
    '127.255.255.255': 'loopback',
    '169.254.1.1': 'link-local',
    '169.254.169.254': 'a cloud metadata address',
    '169.254.170.2': 'a cloud metadata address',
    '100.100.100.200': 'a cloud metadata address',
    '168.63.129.16': 'a cloud metadata address',
    '172.16.0.1': 'a private address',
    '172.31.255.255': 'a private address',
    '192.0.0.8': 'reserved',
    '192.88.99.1': 'reserved',
    '192.168.255.255': 'a private address',
    '198.18.0.1': 'an address for tests of networks',
    '198.19.255.255': 'an address for tests of networks',
    '224.0.0.1': 'multicast',
    '239.255.255.255': 'multicast',
    '240.0.0.1': 'reserved',
    '255.255.255.255': 'broadcast',
    '::': 'an address of this machine',
    '::1': 'loopback',
    '0:0:0:0:0:0:0:1': 'loopback',
    '::127.0.0.1': 'reserved',
    '::ffff:0:7f00:1': 'reserved',
    '::ffff:10.0.0.1': 'a private address',
    '::ffff:a00:1': 'a private address',
    '64:ff9b::7f00:1': 'an address that stands for an IPv4 one',
    '64:ff9b:1::8.8.8.8': 'an address inside the network of a provider',
    '2002:a00:1::': 'a private address',
    '2001:0:a00:1::f7f7:f7f7': 'a private address',
    '2001:0:808:808::f5ff:fffe': 'a private address',
    '2001:10::1': 'reserved',
    '100::1': 'reserved',
    '5f00::1': 'reserved',
    '4000::1': 'reserved',
    'fc00::1': 'a private address',
    'fdff::1': 'a private address',
    'fd00:ec2::254': 'a cloud metadata address',
    'fe80::1': 'link-local',
    'fec0::1': 'a private address',
    'ff02::1': 'multicast',
    '151.101.2.9': 'an address of this machine',
    '::ffff:151.101.2.9': 'an address of this machine',
    '2a01:4f8::7': 'an address of this machine',
    '2002:808:808::9': 'an address of this machine',
  };
  expect(Object.fromEntries(Object.keys(asked).map((address) => [address, guard.refuse(address)]))).toEqual(asked);
});

test('public addresses are not refused, nor the IPv6 forms of public IPv4 addresses', () => {
  const asked = [
    '8.8.8.8',
    '1.1.1.1',
    '11.0.0.1',
    '126.255.255.255',
    '128.0.0.1',
    '172.15.255.255',
    '172.32.0.0',
  ].concat(
    ['100.63.255.255', '100.128.0.0', '223.255.255.255', '2606:4700::1111', '2a00:1450:4001::200e', '3ffe::1'],
    ['::ffff:8.8.8.8', '2002:808:808::1', '2001:0:808:808::f7f7:f7f7'],
  );
  expect(asked.filter((address) => guard.refuse(address) !== null)).toEqual([]);
});

test('text that is not plainly an address is refused', () => {
  const asked = [
    '',
    'localhost',
    '127.1',
    '0x7f.0.0.1',
    '8.8.8.8 ',
    '08.8.8.8',
    '2606:4700::1111%eth0',
    '[::1]',
    '1::2::3',
  ];
  expect(asked.map((address) => guard.refuse(address))).toEqual(asked.map(() => 'not an address'));
});

test('an IPv6 form of an IPv4 address is refused whenever the IPv4 address is, in every spelling', () => {
  const next = random(7);
  const open: string[] = [];
  let refused = 0;
  for (let round = 0; round < 20_000; round++) {
    const v4 = interesting(next);
    const inner = guard.refuse(v4);
    if (inner === null) continue;
    refused++;
    const [a = 0, b = 0, c = 0, d = 0] = v4.split('.').map(Number);
    const hex = (high: number, low: number): string => ((high << 8) | low).toString(16);
    const not = `${hex(255 - a, 255 - b)}:${hex(255 - c, 255 - d)}`;
    const plain = `${hex(a, b)}:${hex(c, d)}`;
    const forms = [`::ffff:${v4}`, `::ffff:${plain}`, `0:0:0:0:0:FFFF:${plain.toUpperCase()}`, `64:ff9b::${v4}`].concat(
      [`64:ff9b:0:0:0:0:${plain}`, `64:ff9b:1::${v4}`, `2002:${plain}::`, `2002:${plain}:1:2:3:4:5`, `::${v4}`],
      [`2001:0:808:808:0:0:${not}`, `2001:0:${plain}::f7f7:f7f7`, `::ffff:0:${v4}`],
    );
    open.push(...forms.filter((form) => guard.refuse(form) === null));
  }
  expect({ open, enough: refused > 5000 }).toEqual({ open: [], enough: true });
});

test('a granted block opens the addresses in it and no others', () => {
  const granting = createGuard({
    granted: ['10.1.0.0/16', '127.0.0.0/8', 'fd00:1::/32', '192.168.7.9'],
    ownAddresses: () => ['10.1.2.3', '10.2.0.1'],
  });
  const asked = [
    '10.1.2.3',
    '10.1.255.255',
    '::ffff:10.1.2.3',
    '127.0.0.1',
    'fd00:1::9',
    '192.168.7.9',
    '10.2.0.1',
  ].concat(['10.0.255.255', '192.168.7.8', 'fd00:2::9', '::1']);
  expect(asked.map((address) => granting.refuse(address))).toEqual(
    [null, null, null, null, null, null, 'a private address'].concat([
      'a private address',
      'a private address',
      'a private address',
      'loopback',
    ]),
  );
});

test('a cloud metadata address must be granted by itself; a wide block does not open it', () => {
  const wide = createGuard({ granted: ['169.254.0.0/16', 'fd00::/8'], ownAddresses: () => [] });
  const single = createGuard({ granted: ['169.254.169.254', 'fd00:ec2::254/128'], ownAddresses: () => [] });
  const ask = (one: typeof wide): unknown[] =>
    ['169.254.1.1', '169.254.169.254', '::ffff:a9fe:a9fe', 'fd00:ec2::254'].map((address) => one.refuse(address));
  expect(ask(wide)).toEqual([null, ...Array<string>(3).fill('a cloud metadata address')]);
  expect(ask(single)).toEqual(['link-local', null, null, null]);
});

test('an address that the machine gains later is refused after at most a second', () => {
  let now = 0;
  const own = ['151.101.2.9'];
  const moving = createGuard({ granted: [], ownAddresses: () => own, now: () => now });
  const before = moving.refuse('151.101.2.10');
  own.push('151.101.2.10');
  now = 1000;
  expect([before, moving.refuse('151.101.2.10')]).toEqual([null, 'an address of this machine']);
});

test('blocks with extra bits, wrong prefixes or other text are rejected', () => {
  const texts = ['10.1.0.0/16', '10.1.2.3', 'fd00:1::/32', '0.0.0.0/0', '10.1.2.3/16', '10.1.0.0/33', '10.1/16'].concat(
    ['fd00::/129', '::ffff:10.0.0.0/104', '10.0.0.0/8 ', '', 'example.com', '10.0.0.0/', 'fe80::%1/64'],
  );
  const none = { problem: 'it is not a block of addresses such as 10.1.0.0/16' };
  expect(texts.map((text) => parseBlock(text))).toEqual([
    { family: 4, address: '10.1.0.0', prefix: 16 },
    { family: 4, address: '10.1.2.3', prefix: 32 },
    { family: 6, address: 'fd00:1::', prefix: 32 },
    { family: 4, address: '0.0.0.0', prefix: 0 },
    { problem: '10.1.2.3 has bits beyond its first 16' },
    { problem: '/33 is more than the 32 bits of an address' },
    none,
    { problem: '/129 is more than the 128 bits of an address' },
    { problem: 'an IPv4 block is written as 10.1.0.0/16' },
    ...Array.from({ length: 5 }, () => none),
  ]);
  expect(() => createGuard({ granted: ['10.0.0.0/40'], ownAddresses: () => [] })).toThrow(/10\.0\.0\.0\/40/);
});

function interesting(next: () => number): string {
  const first = [0, 10, 100, 127, 169, 172, 192, 198, 203, 224, 240, 255, 8, 151][Math.floor(next() * 14)] ?? 0;
  const second = [0, 1, 16, 18, 31, 51, 64, 88, 168, 254, 255][Math.floor(next() * 11)] ?? 0;
  return [first, second, Math.floor(next() * 256), Math.floor(next() * 256)].join('.');
}

function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    return state / 2 ** 32;
  };
}
