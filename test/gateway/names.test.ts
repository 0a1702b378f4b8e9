// test/gateway/names.test.ts: the name service that programs inside a sandbox ask.
import { expect, test } from 'vitest';
import { createNames } from '../../src/gateway/front/names.ts';

const make = (): ReturnType<typeof createNames> =>
  createNames({
    allowed: (host) => host === 'allowed.test' || host.endsWith('.wild.test'),
    fixed: new Map([['db.internal', '127.64.0.1']]),
    first: '127.64.0.1',
  });

test('an allowed name has one address of its own, in any case of its letters', () => {
  const names = make();
  const replies = ['allowed.test', 'ALLOWED.Test', 'a.wild.test', 'b.wild.test', 'db.internal', 'localhost'].map(
    (name) => read(names.answer(query(name))),
  );
  expect(replies).toEqual([
    { rcode: 0, addresses: ['127.64.0.2'] },
    { rcode: 0, addresses: ['127.64.0.2'] },
    { rcode: 0, addresses: ['127.64.0.3'] },
    { rcode: 0, addresses: ['127.64.0.4'] },
    { rcode: 0, addresses: ['127.64.0.1'] },
    { rcode: 0, addresses: ['127.0.0.1'] },
  ]);
  expect(['127.64.0.2', '127.64.0.4', '127.64.0.5'].map((address) => names.nameOf(address))).toEqual([
    'allowed.test',
    'b.wild.test',
    undefined,
  ]);
  expect(['allowed.test', 'db.internal', 'evil.test'].map((host) => names.addressOf(host))).toEqual([
    '127.64.0.2',
    '127.64.0.1',
    null,
  ]);
});

test('the answer repeats the ID and the question byte for byte', () => {
  const asked = query('AlloWed.Test', { flags: 0x0100 });
  const answer = make().answer(asked);
  expect(answer?.toString('hex')).toBe(
    `12348580000100010000000007416c6c6f576564045465737400${'00010001'}c00c00010001000000050004${'7f400002'}`,
  );
});

test('any other name does not exist, and other record types of an allowed name are empty', () => {
  const names = make();
  const none = { rcode: 3, addresses: [] };
  const empty = { rcode: 0, addresses: [] };
  expect([
    ...['evil.test', 'wild.test', 'evilallowed.test', 'allowed.test.evil.test', 'test', ''].map((name) =>
      read(names.answer(query(name))),
    ),
    // A label with a dot, a label with a NUL, and an address in place of a name.
    read(names.answer(labelled(['allowed.test']))),
    read(names.answer(labelled(['a.wild', 'test']))),
    read(names.answer(labelled(['a\0', 'wild', 'test']))),
    read(names.answer(query('127.0.0.1'))),
  ]).toEqual(Array.from({ length: 10 }, () => none));
  // AAAA, HTTPS, SVCB, TXT, any.
  expect([28, 65, 64, 16, 255].map((type) => read(names.answer(query('allowed.test', { type }))))).toEqual(
    Array.from({ length: 5 }, () => empty),
  );
  expect([28, 16].map((type) => read(names.answer(query('evil.test', { type }))))).toEqual([none, none]);
});

test('removing a rule removes its name', () => {
  let open = true;
  const names = createNames({ allowed: () => open, fixed: new Map(), first: '127.64.0.1' });
  const before = read(names.answer(query('allowed.test')));
  open = false;
  expect([before, read(names.answer(query('allowed.test')))]).toEqual([
    { rcode: 0, addresses: ['127.64.0.1'] },
    { rcode: 3, addresses: [] },
  ]);
});

test('EDNS is accepted, and malformed or foreign packets are refused', () => {
  const names = make();
  const plain = query('allowed.test');
  const edns = Buffer.concat([plain, Buffer.from('0000291000000000000000', 'hex')]);
  edns.writeUInt16BE(1, 10);
  const changed = (change: (packet: Buffer) => void): Buffer => {
    const packet = Buffer.from(plain);
    change(packet);
    return packet;
  };
  const pointer = Buffer.from('123401000001000000000000c00c00010001', 'hex');
  expect({
    edns: read(names.answer(edns)),
    cutEdns: read(names.answer(edns.subarray(0, -1))),
    countedButAbsent: read(names.answer(changed((packet) => packet.writeUInt16BE(1, 10)))),
    trailing: read(names.answer(Buffer.concat([plain, Buffer.alloc(1)]))),
    pointer: read(names.answer(pointer)),
    // These values are too large for the length of a label.
    reserved: read(names.answer(labelled(['a'.repeat(64), 'test']))),
    longPointer: read(names.answer(labelled(['a'.repeat(192), 'test']))),
    twoQuestions: read(names.answer(changed((packet) => packet.writeUInt16BE(2, 4)))),
    noQuestion: read(names.answer(changed((packet) => packet.writeUInt16BE(0, 4)))),
    withAnswer: read(names.answer(changed((packet) => packet.writeUInt16BE(1, 6)))),
    tooLong: read(names.answer(labelled(Array<string>(5).fill('a'.repeat(63))))),
    update: read(names.answer(changed((packet) => packet.writeUInt8(0x28, 2)))),
    chaos: read(names.answer(query('allowed.test', { class: 3 }))),
    answer: names.answer(changed((packet) => packet.writeUInt8(0x80, 2))),
    short: names.answer(plain.subarray(0, 11)),
    huge: names.answer(Buffer.concat([plain, Buffer.alloc(1300)])),
  }).toEqual({
    edns: { rcode: 0, addresses: ['127.64.0.2'] },
    cutEdns: { rcode: 1, addresses: [] },
    countedButAbsent: { rcode: 1, addresses: [] },
    trailing: { rcode: 1, addresses: [] },
    pointer: { rcode: 1, addresses: [] },
    reserved: { rcode: 1, addresses: [] },
    longPointer: { rcode: 1, addresses: [] },
    twoQuestions: { rcode: 1, addresses: [] },
    noQuestion: { rcode: 1, addresses: [] },
    withAnswer: { rcode: 1, addresses: [] },
    tooLong: { rcode: 1, addresses: [] },
    update: { rcode: 4, addresses: [] },
    chaos: { rcode: 5, addresses: [] },
    answer: null,
    short: null,
    huge: null,
  });
});

test('65,536 names get an address; the next one fails, and the earlier ones keep theirs', () => {
  const names = make();
  const given = new Set<string | null>();
  for (let at = 0; at < 65_536; at++) given.add(names.addressOf(`n${at}.wild.test`));
  expect({
    different: given.size,
    odd: [...given].filter((address) => address === null || !/^127\.(6[4-9]|[7-9]\d|1[01]\d|12[0-7])\./.test(address)),
    next: read(names.answer(query('one-more.wild.test'))),
    first: names.addressOf('n0.wild.test'),
  }).toEqual({ different: 65_536, odd: [], next: { rcode: 2, addresses: [] }, first: '127.64.0.2' });
});

test('random packets never make it fail or answer at length', () => {
  const names = make();
  const good = query('a.wild.test');
  let state = 42;
  const next = (): number => (state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0) >>> 8;
  let longest = 0;
  let named = 0;
  for (let round = 0; round < 200_000; round++) {
    let packet: Buffer;
    if (round % 2 === 0) {
      packet = Buffer.from(Array.from({ length: next() % 48 }, () => next() % 256));
    } else {
      packet = Buffer.from(good.subarray(0, next() % 8 === 0 ? next() % good.length : good.length));
      for (let change = next() % 4; change > 0 && packet.length > 0; change--)
        packet[next() % packet.length] = next() % 256;
    }
    const answer = names.answer(packet);
    if (answer === null) continue;
    longest = Math.max(longest, answer.length - packet.length);
    if (answer.readUInt16BE(6) > 0) named++;
  }
  expect({ longest, named: named > 1000 }).toEqual({ longest: 16, named: true });
});

function query(name: string, options: { type?: number; class?: number; flags?: number } = {}): Buffer {
  return labelled(name === '' ? [] : name.split('.'), options);
}

function labelled(labels: readonly string[], options: { type?: number; class?: number; flags?: number } = {}): Buffer {
  const header = Buffer.from('123401000001000000000000', 'hex');
  if (options.flags !== undefined) header.writeUInt16BE(options.flags, 2);
  const name = labels.map((label) => Buffer.concat([Buffer.from([label.length]), Buffer.from(label, 'latin1')]));
  const tail = Buffer.alloc(5);
  tail.writeUInt16BE(options.type ?? 1, 1);
  tail.writeUInt16BE(options.class ?? 1, 3);
  return Buffer.concat([header, ...name, tail]);
}

function read(answer: Buffer | null): { rcode: number; addresses: string[] } | null {
  if (answer === null) return null;
  const addresses = answer.readUInt16BE(6) === 0 ? [] : [[...answer.subarray(-4)].join('.')];
  return { rcode: (answer[3] ?? 0) & 15, addresses };
}
