// test/nested-docker/compose-config.test.ts: parsing of the output of compose clients, version 1 and 2, and of engines. Pure.
import { describe, expect, test } from 'vitest';
import { parseComposeText } from '../../src/config/compose-text.ts';
import { readComposed } from '../../src/nested-docker/compose-plan.ts';
import { unframed } from '../../src/nested-docker/compose-engine.ts';

const FIRST = `
services:
  db:
    expose: [5432, '7000-7001', '9/udp']
    volumes:
    - {source: /p/db/init.sql, target: /init.sql, type: bind}
    - data:/data:rw
    - /etc:/etc:rw
    - /pother:/other:rw
  dev: {image: x, profiles: [dev]}
  web:
    depends_on: {db: {condition: service_started}}
    ports:
    - {published: 8080, target: 80}
    - 127.0.0.1:9000:9001/tcp
    - {protocol: udp, published: 53, target: 53}
    volumes: ['/p:/app:rw']
version: '3.9'
`;
const SECOND = `
name: p
services:
  db:
    expose: ['5432']
    volumes:
      - {type: bind, source: /p/db/init.sql, target: /init.sql}
      - {type: volume, source: data, target: /data}
      - {type: bind, source: /, target: /h}
  web:
    depends_on: {db: {condition: service_started, required: true}}
    ports: [{mode: ingress, target: 80, published: '8080', protocol: tcp}]
`;
const ALL = { project: '/p', profiles: [], chosen: [] };
const read = (text: string, want: Partial<Parameters<typeof readComposed>[1]> = {}) =>
  readComposed(parseComposeText(text), { ...ALL, ...want });

describe('compose files, as resolved by the client', () => {
  test('name services with their ports and the project files they mount, and nothing else of this machine', () => {
    expect(read(FIRST)).toEqual({
      list: [
        { name: 'db', address: '127.77.1.1', ports: [5432, 7000, 7001] },
        { name: 'web', address: '127.77.1.2', ports: [80, 9001] },
      ],
      shared: ['.', 'db/init.sql'],
    });
    expect(read(SECOND)).toEqual({
      list: [
        { name: 'db', address: '127.77.1.1', ports: [5432] },
        { name: 'web', address: '127.77.1.2', ports: [80] },
      ],
      shared: ['db/init.sql'],
    });
  });

  test('are reduced to the chosen services with their dependencies, and to the active profiles', () => {
    const names = (want: Parameters<typeof read>[1]): string[] => read(FIRST, want).list.map(({ name }) => name);
    expect(names({ chosen: ['web'] })).toEqual(['db', 'web']);
    expect(names({ chosen: ['db'] })).toEqual(['db']);
    expect(names({ profiles: ['dev'] })).toEqual(['db', 'dev', 'web']);
    expect(() => names({ chosen: ['nobody'] })).toThrow('no service "nobody"');
  });

  test.each([
    ['a name with a line break', '{services: {"a\\n127.0.0.1 evil": {}}}', /cannot be called/],
    ['the name of this machine', '{services: {localhost: {}}}', /cannot be called/],
    [
      'a thousand services',
      `{services: {${Array.from({ length: 1000 }, (_, i) => `s${i}: {}`).join()}}}`,
      /100 are the most/,
    ],
    ['no YAML', '{', /cannot be parsed/],
  ])('are refused for %s', (_what, text, why) => {
    expect(() => read(text)).toThrow(why);
  });

  test.each([
    '',
    '[]',
    '7',
    '{services: 7}',
    '{services: {a: [1]}}',
    '{services: {a: {ports: {x: 1}, volumes: 3, expose: [x, -1, 70000, 9-1]}}}',
  ])('of another form yield nothing: %s', (text) => {
    const { list, shared } = read(text);
    expect([...list.flatMap(({ ports }) => ports), ...shared]).toEqual([]);
  });
});

test('stdout and stderr of a container are separated, wherever the stream is cut', () => {
  const piece = (stream: number, text: string): Buffer => {
    const head = Buffer.alloc(8);
    head[0] = stream;
    head.writeUInt32BE(text.length, 4);
    return Buffer.concat([head, Buffer.from(text)]);
  };
  const all = Buffer.concat([piece(1, 'one\n'), piece(2, ''), piece(2, 'two\n'), piece(1, 'three\n')]);
  for (let size = 1; size <= all.length; size++) {
    let said = '';
    const take = unframed((bytes) => (said += bytes.toString('utf8')));
    for (let at = 0; at < all.length; at += size) take(all.subarray(at, at + size));
    expect(said).toBe('one\ntwo\nthree\n');
  }
});
