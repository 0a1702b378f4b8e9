// attack/table/origin.ts: the hosts that the attacked sandbox may reach, and the only name server during the attack: nothing outside this
// machine is ever asked, and every query is known.
import { createSocket } from 'node:dgram';
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { createServer as createTlsServer, type SecureContext } from 'node:tls';
import { errorCode } from '../../lib/error-code.ts';
import { answer } from './origin-answers.ts';

export const DOMAIN = 'ags-attack.test';

export interface Origin extends AsyncDisposable {
  readonly address: string;
  /** The port of the host that echoes and of the host that a secret is for: TLS, or in clear for clients that do not start with it. */
  readonly port: number;
  readonly securePort: number;
  /** The port of a proxy that repeats everything it receives. */
  readonly proxyPort: number;
  /** "127.0.0.1:5353" */
  readonly nameServer: string;
  /** Names that were looked up, without repetition. */
  readonly asked: ReadonlySet<string>;
  /** Data that arrived in clear and must not: requests hidden in others, and the secret. */
  readonly wrong: readonly string[];
}

export interface OriginInput {
  /** The value of the secret for the secure host. */
  readonly secret: string;
  /** A certificate for this name, signed by an authority that the gateway trusts, or does not. */
  readonly certificateFor: (host: string, trusted: boolean) => SecureContext;
  /** Addresses of this machine. */
  readonly ownAddresses: readonly string[];
}

/** Where names of our domain lead: a list for each query, the last one for all further queries. */
const NAMES: Readonly<Record<string, readonly (readonly string[])[]>> = {
  loop: [['127.0.0.1']],
  zero: [['0.0.0.0']],
  lan: [['10.0.0.1']],
  shared: [['100.64.0.1']],
  metadata: [['169.254.169.254']],
  cloud: [['fd00:c1::a9fe:a9fe']],
  loop6: [['::1']],
  ula: [['fd00:ec2::254']],
  mapped: [['::ffff:7f00:1']],
  nat64: [['64:ff9b::7f00:1']],
  sixtofour: [['2002:7f00:1::']],
  teredo: [['2001::80ff:fffe']],
  mixed: [['192.0.2.1', '127.0.0.1']],
  rebind: [['192.0.2.1'], ['127.0.0.1']],
  // One address of each special-purpose block: the gateway may dial none of them.
  special: [
    [
      '0.1.2.3',
      '10.1.2.3',
      '100.64.1.2',
      '127.1.2.3',
      '169.254.1.2',
      '172.16.1.2',
      '192.0.0.9',
      '192.31.196.1',
      '192.52.193.1',
      '192.88.99.1',
      '192.168.1.2',
      '192.175.48.1',
      '198.18.0.1',
      '224.0.0.1',
      '255.255.255.255',
      '240.0.0.1',
    ],
  ],
  special6: [
    ['::', '64:ff9b:1::1', '100::1', '2001:2::1', '4000::1', '5f00::1', 'fc00::1', 'fe80::1', 'fec0::1', 'ff02::1'],
  ],
  proxied: [['192.0.2.1']],
  'proxied-lan': [['10.0.0.1']],
};

/** Names that lead to this server. */
const HERE: readonly string[] = [
  'echo',
  'paths',
  'partly',
  'denied',
  'tunnel',
  'inspected',
  'looked-into',
  'secret',
  'forged',
  'mistaken',
];

export async function openOrigin(input: OriginInput): Promise<Origin> {
  const wrong: string[] = [];
  const sockets = new Set<Socket>();
  const servers: Server[] = [];
  const listen = async (server: Server, address: string, port = 0): Promise<number> => {
    server.on('connection', (socket) => {
      sockets.add(socket);
      socket.on('error', () => undefined);
    });
    await new Promise<void>((resolve, reject) => server.once('error', reject).listen(port, address, resolve));
    servers.push(server);
    return (server.address() as AddressInfo).port;
  };
  const inClear = (socket: Socket, chunk: Buffer): void => {
    const heard = chunk.toString('latin1');
    if (heard.includes('/hidden')) wrong.push(`the origin: ${heard.split('\r\n')[0] ?? ''}`);
    if (heard.includes(input.secret)) wrong.push('the origin: the secret, in clear');
    void answer(socket, heard, input.secret);
  };
  const echo = (): Server =>
    createServer((socket) => void socket.on('data', (chunk: Buffer) => inClear(socket, chunk)));
  const secure = secureServer(input);
  const either = (): Server =>
    createServer((socket) => {
      socket.once('data', (first: Buffer) => {
        if (first[0] === TLS_HANDSHAKE) {
          socket.pause();
          socket.unshift(first);
          secure.emit('connection', socket);
          return;
        }
        inClear(socket, first);
        socket.on('data', (chunk: Buffer) => inClear(socket, chunk));
      });
    });
  const proxy = createServer((socket) => void socket.once('data', (chunk: Buffer) => tellAll(socket, chunk)));
  const address = await ownLoopback((one) => listen(echo(), one, 80));
  // These two ports need privileges. Without them, connections there are refused, because nothing listens.
  await listen(echo(), address, 443).catch(() => undefined);
  const [port, securePort] = [await listen(either(), address), await listen(either(), address)];
  const proxyPort = await listen(proxy, address);
  const asked = new Set<string>();
  const names = await serveNames(asked, (label) =>
    HERE.includes(label) ? [[address]] : label === 'own' ? [input.ownAddresses] : NAMES[label],
  );
  return {
    address,
    port,
    securePort,
    proxyPort,
    nameServer: `127.0.0.1:${names.port}`,
    asked,
    wrong,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      names.close();
      await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
    },
  };
}

/** A loopback address that nothing else uses, so that granting it grants nothing else; each process has its own set. */
async function ownLoopback(take: (address: string) => Promise<unknown>): Promise<string> {
  const { pid } = process;
  const addresses = Array.from(
    { length: 15 },
    (_, nth) => `127.${66 + (pid % 100)}.${(pid >> 8) & 255}.${1 + (pid & 15) * 15 + nth}`,
  );
  for (const address of addresses) {
    const code = await take(address).then(() => null, errorCode);
    if (code !== 'EADDRINUSE') return address;
  }
  return addresses[0] ?? '';
}

const TLS_HANDSHAKE = 0x16;

/** Two of the names are false: one has an untrusted certificate, the other shows the certificate of a third. */
function secureServer({ certificateFor, secret }: OriginInput): Server {
  const shown = (name: string): SecureContext =>
    certificateFor(name.startsWith('mistaken.') ? `other.${DOMAIN}` : name, !name.startsWith('forged.'));
  return createTlsServer({ SNICallback: (name, done) => done(null, shown(name)) }, (socket) => {
    socket.on('error', () => undefined);
    socket.on('data', (chunk: Buffer) => void answer(socket, chunk.toString('latin1'), secret));
  });
}

/** A proxy in between: it opens nothing, and repeats what it receives, the password included. */
function tellAll(socket: Socket, chunk: Buffer): void {
  const heard = chunk.toString('latin1');
  const told = /^proxy-authorization: (.*)\r$/im.exec(heard)?.[1] ?? '';
  socket.end(`HTTP/1.1 503 ${told}\r\nX-Told: ${told}\r\nContent-Length: ${heard.length}\r\n\r\n${heard}`, 'latin1');
}

async function serveNames(
  asked: Set<string>,
  find: (label: string) => readonly (readonly string[])[] | undefined,
): Promise<{ port: number; close(): void }> {
  const turns = new Map<string, number>();
  const names = createSocket('udp4');
  names.on('message', (question, peer) => {
    const { name, type, end } = readQuestion(question);
    asked.add(name);
    if (name.startsWith('silent')) return;
    const lists = name.endsWith(`.${DOMAIN}`) ? find(name.slice(0, -DOMAIN.length - 1)) : undefined;
    const turn = turns.get(`${name} ${type}`) ?? 0;
    turns.set(`${name} ${type}`, turn + 1);
    const wanted = (lists?.[Math.min(turn, lists.length - 1)] ?? []).filter(
      (one) => one.includes(':') === (type === AAAA),
    );
    const head = Buffer.from(question.subarray(0, end));
    head.writeUInt16BE(lists === undefined ? 0x8183 : 0x8180, 2);
    head.writeUInt16BE(wanted.length, 6);
    head.writeUInt32BE(0, 8);
    names.send(Buffer.concat([head, ...wanted.map((one) => record(one, type))]), peer.port, peer.address);
  });
  await new Promise<void>((resolve) => names.bind(0, '127.0.0.1', resolve));
  return { port: names.address().port, close: () => names.close() };
}

const AAAA = 28;

function readQuestion(question: Buffer): { name: string; type: number; end: number } {
  const labels: string[] = [];
  let at = 12;
  for (let size = question[at] ?? 0; size > 0; size = question[at] ?? 0) {
    labels.push(question.toString('latin1', at + 1, at + 1 + size));
    at += size + 1;
  }
  return { name: labels.join('.').toLowerCase(), type: question.readUInt16BE(at + 1), end: at + 5 };
}

/** A lifetime of zero, so that the next query is asked again. */
function record(address: string, type: number): Buffer {
  const data = type === AAAA ? ipv6(address) : Buffer.from(address.split('.').map(Number));
  return Buffer.concat([Buffer.from([0xc0, 0x0c, 0, type, 0, 1, 0, 0, 0, 0, 0, data.length]), data]);
}

function ipv6(address: string): Buffer {
  const [before = '', after = ''] = address.split('::');
  const parts = (text: string): number[] =>
    text === '' ? [] : text.split(':').map((part) => Number.parseInt(part, 16));
  const middle = 8 - parts(before).length - parts(after).length;
  const bytes = Buffer.alloc(16);
  [...parts(before), ...Array.from({ length: middle }, () => 0), ...parts(after)].forEach((word, i) =>
    bytes.writeUInt16BE(word, i * 2),
  );
  return bytes;
}
