// test/gateway/fixture.ts: a test network for the gateway: name server, origins with and without TLS, and raw clients.
import { createSocket } from 'node:dgram';
import { createServer, connect, type AddressInfo, type Server, type Socket } from 'node:net';
import { connect as tlsConnect, createServer as createTlsServer, type TLSSocket } from 'node:tls';
import { createAuthority, type Authority } from '../../src/gateway/intercept/certificate.ts';
import { createGateway, type Gateway, type GatewayListener, type GatewayInput } from '../../src/gateway/gateway.ts';
import type { Decision, NetworkPolicy, NetworkRule } from '../../src/protocol/network.ts';
import { parseRule } from '../../src/protocol/network-rule.ts';

/** The origins' address: a special one that only these tests' gateways grant, different in each process. */
export const ORIGIN = `127.${10 + ((process.pid >> 14) % 50)}.${(process.pid >> 6) & 255}.${9 + (process.pid & 63)}`;

export interface HostContext extends AsyncDisposable {
  readonly authority: Authority;
  /** The name server's answers; a function is called for each question. */
  readonly names: Map<string, readonly string[] | (() => readonly string[])>;
  /** Questions that reached the name server. */
  readonly asked: string[];
  readonly dns: string;
  /** Plain TCP: `onConnection` gets every connection. */
  tcp(port: number, onConnection: (socket: Socket) => void, address?: string): Promise<number>;
  /** Plain TCP that answers nothing, records everything, and ends when the client ends. */
  spy(port: number, address?: string): Promise<Spy>;
  /** TLS with a certificate for whatever name the client asks for. */
  tls(port: number, onConnection: (socket: TLSSocket) => void): Promise<number>;
  gateway(more?: GatewayMore): Promise<TestGateway>;
}

export interface Spy {
  readonly port: number;
  readonly sockets: readonly Socket[];
  /** The number of connections, and everything that was sent on them. */
  readonly connections: number;
  readonly heard: string;
}

export interface GatewayMore extends Partial<Omit<GatewayInput, 'policy' | 'rules'>> {
  readonly allow?: readonly string[];
  readonly deny?: readonly string[];
  readonly policy?: Partial<NetworkPolicy>;
}

export interface TestGateway {
  readonly gateway: Gateway;
  readonly port: number;
  readonly log: Decision[];
  listener(listener: GatewayListener, address?: string, port?: number): Promise<number>;
  /** Sends, reads until the other side closes or `until` matches, and returns the text. */
  talk(
    bytes: string | Buffer,
    options?: { until?: RegExp; host?: string; port?: number; end?: boolean; waitMs?: number },
  ): Promise<string>;
  connect(port?: number, host?: string): Promise<Socket>;
  /** A tunnel, or the answer that refused it. */
  tunnel(host: string, port?: number): Promise<Socket | string>;
  /** A tunnel; rejects with the answer that refused it. */
  open(host: string, port?: number): Promise<Socket>;
}

export const LIMITS = { connections: 1000, perSecond: 10_000, bytesOut: null };

export function rulesOf(allow: readonly string[], deny: readonly string[] = []): NetworkRule[] {
  const parse = (action: NetworkRule['action'], text: string): NetworkRule => {
    const parsed = parseRule(text);
    if ('problem' in parsed) throw new Error(`${text}: ${parsed.problem}`);
    return { action, ...parsed, origin: 'test' };
  };
  return [...allow.map((text) => parse('allow', text)), ...deny.map((text) => parse('deny', text))];
}

export async function createWorld(): Promise<HostContext> {
  const names: HostContext['names'] = new Map([['allowed.test', [ORIGIN]]]);
  const asked: string[] = [];
  const server = await nameServer(names, asked);
  const open: { close(): void }[] = [{ close: () => server.close() }];
  const sockets = new Set<Socket>();
  const authority = createAuthority({ commonName: 'test origins', days: 2, now: new Date() });
  const listen = async (made: Server, port: number, address: string): Promise<number> => {
    made.on('connection', (socket) => {
      sockets.add(socket);
      socket.on('error', () => undefined);
    });
    await new Promise<void>((resolve, reject) => {
      made.once('error', reject);
      made.listen({ host: address, port, backlog: 4096 }, resolve);
    });
    open.push(made);
    return (made.address() as AddressInfo).port;
  };
  const dns = `127.0.0.1:${server.address().port}`;
  const tcp: HostContext['tcp'] = (port, onConnection, address = ORIGIN) =>
    listen(createServer({ allowHalfOpen: true }, onConnection), port, address);
  return {
    authority,
    names,
    asked,
    dns,
    tcp,
    async spy(port, address) {
      const spied: Socket[] = [];
      let heard = '';
      const actual = await tcp(
        port,
        (socket) => {
          spied.push(socket);
          socket.on('data', (chunk) => (heard += chunk.toString('latin1')));
          socket.on('end', () => socket.end());
        },
        address,
      );
      return {
        port: actual,
        sockets: spied,
        get connections() {
          return spied.length;
        },
        get heard() {
          return heard;
        },
      };
    },
    tls: (port, onConnection) =>
      listen(
        createTlsServer(
          {
            ALPNProtocols: ['http/1.1'],
            SNICallback: (name, done) => done(null, authority.contextFor(name)),
            ...authority.leafFor('allowed.test'),
          },
          (socket) => {
            socket.on('error', () => undefined);
            onConnection(socket);
          },
        ),
        port,
        ORIGIN,
      ),
    async gateway({ allow = ['allowed.test'], deny = [], policy = {}, ...more } = {}) {
      const log: Decision[] = [];
      const rules = rulesOf(allow, deny);
      const gateway = createGateway({
        run: 'run',
        policy: {
          mode: 'on',
          presets: [],
          rules,
          addresses: [`${ORIGIN}/32`],
          tcp: [],
          publish: [],
          upstreams: [],
          dns: [dns],
          limits: LIMITS,
          askSeconds: 2,
          ...policy,
        },
        rules,
        secrets: [],
        upstreams: [],
        authority: null,
        roots: () => [authority.certificatePem],
        ownAddresses: () => ['192.0.2.77'],
        grantAddresses: new Map(),
        log: (decision) => log.push(decision),
        onLimit: () => undefined,
        onAsk: () => undefined,
        who: null,
        isToken: null,
        now: Date.now,
        ...more,
      });
      open.push(gateway);
      const listener: TestGateway['listener'] = (kind, address = '127.0.0.1', port = 0) =>
        listen(
          createServer({ allowHalfOpen: true, noDelay: true }, (socket) => gateway.enter(kind, socket)),
          port,
          address,
        );
      const port = await listener({ kind: 'proxy' });
      const dial = (to = port, host = '127.0.0.1'): Promise<Socket> =>
        new Promise((resolve, reject) => {
          const socket = connect({ host, port: to, allowHalfOpen: true });
          sockets.add(socket);
          socket.once('error', reject);
          socket.once('connect', () => {
            socket.off('error', reject);
            socket.on('error', () => undefined);
            resolve(socket);
          });
        });
      const tunnel: TestGateway['tunnel'] = async (host, to = 443) => {
        const socket = await dial();
        socket.write(connectTo(`${host}:${to}`));
        const answer = await readText(socket, /\r\n\r\n/);
        return answer.startsWith('HTTP/1.1 200 ') ? socket : answer;
      };
      return {
        gateway,
        port,
        log,
        listener,
        connect: dial,
        tunnel,
        async talk(bytes, { until, host, port: to, end = false, waitMs = 5000 } = {}) {
          const socket = await dial(to, host);
          const answer = readText(socket, until, waitMs);
          if (end) socket.end(bytes);
          else socket.write(bytes);
          const text = await answer;
          socket.destroy();
          return text;
        },
        async open(host, to) {
          const socket = await tunnel(host, to);
          if (typeof socket === 'string') throw new Error(socket);
          return socket;
        },
      };
    },
    async [Symbol.asyncDispose]() {
      for (const one of open.toReversed()) one.close();
      for (const socket of sockets) socket.destroy();
      await Promise.resolve();
    },
  };
}

/** Reads until the other side ends, the text matches or the time is over. Bytes after the match stay in the socket. */
export function readText(socket: Socket, until?: RegExp, waitMs = 5000): Promise<string> {
  return new Promise((resolve) => {
    if (socket.destroyed || socket.readableEnded) return resolve('');
    let text = '';
    const stop = (): void => {
      clearTimeout(timer);
      socket.off('data', onData);
      socket.off('end', stop);
      socket.off('close', stop);
      socket.pause();
      resolve(text);
    };
    const timer = setTimeout(stop, waitMs);
    const onData = (chunk: Buffer): void => {
      text += chunk.toString('latin1');
      const match = until?.exec(text);
      if (match === null || match === undefined) return;
      const rest = text.slice(match.index + match[0].length);
      text = text.slice(0, text.length - rest.length);
      stop();
      if (rest !== '') socket.unshift(Buffer.from(rest, 'latin1'));
    };
    socket.on('data', onData);
    socket.on('end', stop);
    socket.on('close', stop);
    socket.resume();
  });
}

/** TLS over a tunnel; rejects if the handshake fails. */
export function startTls(
  socket: Socket,
  servername: string,
  context: HostContext,
  ALPNProtocols: string[] = [],
): Promise<TLSSocket> {
  return new Promise((resolve, reject) => {
    const secure = tlsConnect({ socket, servername, ca: [context.authority.certificatePem], ALPNProtocols }, () =>
      resolve(secure),
    );
    secure.once('error', reject);
    socket.once('close', () => reject(new Error('closed')));
  });
}

/** Answers A questions from the map, and all others with no records. */
async function nameServer(
  names: HostContext['names'],
  asked: string[],
): Promise<{ close(): void; address(): { port: number } }> {
  const socket = createSocket('udp4');
  socket.on('message', (question, peer) => {
    const labels: string[] = [];
    let at = 12;
    for (let size = question[at] ?? 0; size > 0; size = question[at] ?? 0) {
      labels.push(question.toString('latin1', at + 1, at + 1 + size));
      at += size + 1;
    }
    const name = labels.join('.').toLowerCase();
    const type = question.readUInt16BE(at + 1);
    if (type === 1) asked.push(name);
    const entry = names.get(name);
    const all = typeof entry === 'function' && type === 1 ? entry() : typeof entry === 'function' ? [] : (entry ?? []);
    const wanted = all.filter((address) => address.includes(':') === (type === 28));
    const head = Buffer.from(question.subarray(0, at + 5));
    head.writeUInt16BE(entry === undefined ? 0x8183 : 0x8180, 2);
    head.writeUInt16BE(wanted.length, 6);
    head.writeUInt32BE(0, 8);
    const records = wanted.map((address) => {
      const data = address.includes(':') ? ipv6(address) : Buffer.from(address.split('.').map(Number));
      const record = Buffer.from([0xc0, 0x0c, 0, type, 0, 1, 0, 0, 0, 0, 0, data.length]);
      return Buffer.concat([record, data]);
    });
    socket.send(Buffer.concat([head, ...records]), peer.port, peer.address);
  });
  await new Promise<void>((resolve) => socket.bind(0, '127.0.0.1', resolve));
  return socket;
}

function ipv6(address: string): Buffer {
  const [before = '', after = ''] = address.split('::');
  const parts = (text: string): number[] =>
    text === '' ? [] : text.split(':').map((part) => Number.parseInt(part, 16));
  const middle = address.includes('::') ? 8 - parts(before).length - parts(after).length : 0;
  const words = [...parts(before), ...Array.from({ length: middle }, () => 0), ...parts(after)];
  const bytes = Buffer.alloc(16);
  words.forEach((word, i) => bytes.writeUInt16BE(word, i * 2));
  return bytes;
}

export const connectTo = (authority: string, more = ''): string =>
  `CONNECT ${authority} HTTP/1.1\r\nHost: ${authority}\r\n${more}\r\n`;
export const statusOf = (answer: string): string => /^HTTP\/1\.1 (\d\d\d) /.exec(answer)?.[1] ?? answer;

/** A SOCKS5 client's bytes in one piece: greeting without password, CONNECT to a name. */
export function socks(host: string | Buffer, port: number): Buffer {
  const name = Buffer.from(host);
  return Buffer.concat([Buffer.from([5, 1, 0, 5, 1, 0, 3, name.length]), name, Buffer.from([port >> 8, port & 255])]);
}

/** An A question, as a program inside sends it to the name service. */
export function questionFor(name: string): Buffer {
  const labels = name.split('.').flatMap((label) => [Buffer.from([label.length]), Buffer.from(label, 'latin1')]);
  const head = Buffer.from([0x12, 0x34, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
  return Buffer.concat([head, ...labels, Buffer.from([0, 0, 1, 0, 1])]);
}

/** The address that programs inside get for a name; null if the name does not exist for them. */
export function addressInside(gateway: Gateway, name: string): string | null {
  const answer = gateway.answerName(questionFor(name));
  if (answer === null || answer.readUInt16BE(6) === 0) return null;
  return [...answer.subarray(-4)].join('.');
}

export interface HelloParts {
  readonly names?: readonly string[];
  /** More extensions, by type. */
  readonly more?: readonly (readonly [type: number, content: Buffer])[];
}

/** The handshake message of a TLS client, without records around it. */
export function helloMessage({ names = [], more = [] }: HelloParts): Buffer {
  const sized = (bytes: Buffer, width: number): Buffer => {
    const size = Buffer.alloc(width);
    size.writeUIntBE(bytes.length, 0, width);
    return Buffer.concat([size, bytes]);
  };
  const serverName = (name: string): Buffer =>
    sized(Buffer.concat([Buffer.from([0]), sized(Buffer.from(name, 'latin1'), 2)]), 2);
  const extensions = [...names.map((name) => [0, serverName(name)] as const), ...more].map(([type, content]) =>
    Buffer.concat([Buffer.from([type >> 8, type & 255]), sized(content, 2)]),
  );
  const body = Buffer.concat([
    Buffer.from([3, 3]),
    Buffer.alloc(32, 7),
    sized(Buffer.alloc(32, 9), 1),
    sized(Buffer.from([0x13, 1, 0x13, 2]), 2),
    sized(Buffer.from([0]), 1),
    sized(Buffer.concat(extensions), 2),
  ]);
  return Buffer.concat([Buffer.from([1]), sized(body, 3)]);
}

/** Cuts a message into TLS records at these places. */
export function inRecords(message: Buffer, ...cuts: number[]): Buffer {
  const places = [0, ...cuts, message.length];
  return Buffer.concat(
    places.slice(1).map((end, i) => {
      const part = message.subarray(places[i], end);
      return Buffer.concat([Buffer.from([22, 3, 1, part.length >> 8, part.length & 255]), part]);
    }),
  );
}

export const helloFor = (...names: string[]): Buffer => inRecords(helloMessage({ names }));
