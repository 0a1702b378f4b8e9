// test/gateway/name-server.ts: a local name server with scripted answers.
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { isIPv6 } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import { addressBytes } from '../../src/gateway/dial/address.ts';

export interface Given {
  readonly addresses?: readonly string[];
  readonly ttl?: number;
  /** The response code; 3 is NXDOMAIN. */
  readonly rcode?: number;
  readonly delayMs?: number;
  /** Whether the server sends no answer at all. */
  readonly silent?: boolean;
}

export interface NameServer {
  /** For example "127.0.0.1:40000". */
  readonly address: string;
  /** "A name", "AAAA name", in the order they came. */
  readonly asked: string[];
  close(): Promise<void>;
}

/** `answer` gives all addresses of a name; a question gets those of its family. */
export async function startNameServer(answer: (name: string, type: 'A' | 'AAAA') => Given): Promise<NameServer> {
  const socket = createSocket('udp4');
  const asked: string[] = [];
  let open = true;
  socket.on('message', (packet, from) => {
    const { name, end, type } = readQuestion(packet);
    asked.push(`${type} ${name}`);
    const given = answer(name, type);
    if (given.silent === true) return;
    void setTimeout(given.delayMs ?? 0).then(() => {
      if (open) socket.send(makeAnswer(packet, end, type, given), from.port, from.address);
    });
  });
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  return {
    address: `127.0.0.1:${socket.address().port}`,
    asked,
    close: () => {
      open = false;
      return new Promise((resolve) => socket.close(() => resolve()));
    },
  };
}

function readQuestion(packet: Buffer): { name: string; end: number; type: 'A' | 'AAAA' } {
  const labels: string[] = [];
  let at = 12;
  for (let length = packet[at] ?? 0; length > 0; length = packet[at] ?? 0) {
    labels.push(packet.toString('latin1', at + 1, at + 1 + length));
    at += 1 + length;
  }
  return { name: labels.join('.').toLowerCase(), end: at + 5, type: packet.readUInt16BE(at + 1) === 28 ? 'AAAA' : 'A' };
}

function makeAnswer(packet: Buffer, end: number, type: 'A' | 'AAAA', given: Given): Buffer {
  const records = (given.addresses ?? [])
    .filter((address) => isIPv6(address) === (type === 'AAAA'))
    .map((address) => {
      const bytes = addressBytes(address) ?? [];
      const head = Buffer.alloc(12);
      head.writeUInt16BE(0xc00c, 0);
      head.writeUInt16BE(type === 'A' ? 1 : 28, 2);
      head.writeUInt16BE(1, 4);
      head.writeUInt32BE(given.ttl ?? 60, 6);
      head.writeUInt16BE(bytes.length, 10);
      return Buffer.concat([head, Buffer.from(bytes)]);
    });
  const question = Buffer.from(packet.subarray(0, end));
  question.writeUInt16BE(0x8180 | (given.rcode ?? 0), 2);
  question.writeUInt16BE(records.length, 6);
  question.writeUInt32BE(0, 8);
  return Buffer.concat([question, ...records]);
}
