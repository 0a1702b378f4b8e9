// bench/gateway/names.mjs: the host names, and a DNS server that resolves them all to this machine.
import { createSocket } from 'node:dgram';

/** As many as in a typical project. The requested one is in the middle of the list. */
export const NAMES = Array.from({ length: 52 }, (_, i) => `host${String(i + 1).padStart(2, '0')}.bench.test`);
export const NAME = NAMES[25];

/** Resolves to the same place, but is on no list. */
export const UNLISTED = 'elsewhere.test';

/** Maps all names to one address. */
export const hostsFile = (address) =>
  ['127.0.0.1 localhost', ...[...NAMES, UNLISTED].map((name) => `${address} ${name}`), ''].join('\n');

/** Answers A queries with 127.0.0.1 and all others with nothing. */
export async function serveNames(port) {
  const server = createSocket('udp4');
  server.on('message', (query, from) => server.send(answer(query), from.port, from.address));
  await new Promise((resolve) => server.bind(port, '127.0.0.1', resolve));
  return server;
}

function answer(query) {
  let end = 12;
  while (query[end] !== 0) end += query[end] + 1;
  const question = query.subarray(12, end + 5);
  const isAddress = question.readUInt16BE(question.length - 4) === 1;
  const head = Buffer.from(query.subarray(0, 12));
  head.writeUInt16BE(0x8180, 2);
  head.writeUInt16BE(isAddress ? 1 : 0, 6);
  head.writeUInt32BE(0, 8);
  // A pointer to the question's name; A, IN, an hour, four bytes.
  const parts = [head, question];
  if (isAddress) parts.push(Buffer.from([0xc0, 0x0c, 0, 1, 0, 1, 0, 0, 0x0e, 0x10, 0, 4, 127, 0, 0, 1]));
  return Buffer.concat(parts);
}
