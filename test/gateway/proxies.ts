// test/gateway/proxies.ts: small local servers and proxies that record what they are sent.
import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';

export interface Listening {
  readonly port: number;
  /** The bytes that each connection sent before it was opened, in hexadecimal or as text. */
  readonly heard: string[];
  close(): Promise<void>;
}

/** Both ends of a connection; `open` makes the near one. */
export async function socketPair(
  open: (port: number) => Socket,
  pauseOnConnect: boolean,
): Promise<[near: Socket, remote: Socket]> {
  const server = createServer({ allowHalfOpen: true, pauseOnConnect }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const near = open((server.address() as AddressInfo).port);
  const [[remote]] = (await Promise.all([once(server, 'connection'), once(near, 'connect')])) as [[Socket], unknown];
  server.close();
  for (const end of [near, remote]) end.on('error', () => undefined);
  return [near, remote];
}

/** A server that sends the greeting first and then echoes. */
export function startEcho(host = '127.0.0.1', greeting = 'hello '): Promise<Listening> {
  return listen(host, (socket) => {
    socket.write(greeting);
    socket.pipe(socket);
  });
}

/** A server that sends the next of `answers` for each piece it gets, and nothing more. */
export function startScripted(
  answers: readonly (string | Buffer)[],
  options: { end?: boolean } = {},
): Promise<Listening> {
  return listen('127.0.0.1', (socket, heard) => {
    const left = [...answers];
    socket.on('data', (chunk: Buffer) => {
      heard.push(chunk.toString('latin1'));
      const next = left.shift();
      if (next !== undefined) socket.write(next);
      if (left.length === 0 && options.end === true) socket.end();
    });
  });
}

/** A proxy that serves CONNECT, and looks every name up in `names`. */
export function startHttpProxy(names: Readonly<Record<string, string>>, auth: string | null): Promise<Listening> {
  return listen('127.0.0.1', async (socket, heard): Promise<unknown> => {
    const head = await until(socket, (bytes) => (bytes.includes('\r\n\r\n') ? bytes.indexOf('\r\n\r\n') + 4 : 0));
    const text = head.toString('latin1');
    heard.push(text);
    const [, host = '', port = ''] =
      /^CONNECT (?:\[([^\]]+)\]|([^:]+)):(\d+) /.exec(text)?.filter((part) => part) ?? [];
    const basic = `Basic ${Buffer.from(auth ?? '').toString('base64')}`;
    if (auth !== null && !text.includes(`\r\nProxy-Authorization: ${basic}\r\n`))
      return socket.end(
        `HTTP/1.1 ${text.includes('Proxy-Authorization') ? 401 : 407} ${auth}\r\nProxy-Authenticate: Basic realm="${auth}"\r\n\r\n`,
      );
    const upstream = await tryConnect(names[host] ?? host, Number(port));
    if (upstream === null) return socket.end('HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n');
    socket.write('HTTP/1.1 200 Connection established\r\nVia: test\r\n\r\n');
    return join(socket, upstream);
  });
}

/** A SOCKS5 proxy; with `auth` it requires that user and password. */
export function startSocksProxy(names: Readonly<Record<string, string>>, auth: string | null): Promise<Listening> {
  return listen('127.0.0.1', async (socket, heard): Promise<unknown> => {
    const greeting = await until(socket, (bytes) => (bytes.length >= 2 ? 2 + (bytes[1] ?? 0) : 0));
    heard.push(greeting.toString('hex'));
    if (auth !== null) {
      socket.write(Buffer.from([5, greeting.subarray(2).includes(2) ? 2 : 255]));
      const said = await until(socket, passwordLength);
      heard.push(said.toString('hex'));
      const user = said.toString('utf8', 2, 2 + (said[1] ?? 0));
      const right = `${user}:${said.toString('utf8', 3 + (said[1] ?? 0))}` === auth;
      socket.write(Buffer.from([1, right ? 0 : 1]));
      if (!right) return socket.end();
    } else socket.write(Buffer.from([5, 0]));
    const request = await until(socket, requestLength);
    heard.push(request.toString('hex'));
    const host = readHost(request);
    const upstream = await tryConnect(names[host] ?? host, request.readUInt16BE(request.length - 2));
    if (upstream === null) return socket.end(Buffer.from('05050001000000000000', 'hex'));
    socket.write(Buffer.from(`05000003${'04'}61626364${'0000'}`, 'hex'));
    return join(socket, upstream);
  });
}

async function listen(host: string, serve: (socket: Socket, heard: string[]) => unknown): Promise<Listening> {
  const sockets = new Set<Socket>();
  const heard: string[] = [];
  const server: Server = createServer({ allowHalfOpen: true }, (socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined).on('close', () => sockets.delete(socket));
    void serve(socket, heard);
  });
  server.listen(0, host);
  await once(server, 'listening');
  const address = server.address();
  return {
    port: typeof address === 'object' && address !== null ? address.port : 0,
    heard,
    close: () => {
      for (const socket of sockets) socket.destroy();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}

/** Reads until `length` tells where the message ends; later bytes stay in the socket. Never resolves if the peer closes. */
function until(socket: Socket, length: (bytes: Buffer) => number): Promise<Buffer> {
  return new Promise((resolve) => {
    let bytes: Buffer = Buffer.alloc(0);
    const onData = (chunk: Buffer): void => {
      bytes = Buffer.concat([bytes, chunk]);
      const end = length(bytes);
      if (end === 0 || end > bytes.length) return;
      socket.off('data', onData).pause();
      if (bytes.length > end) socket.unshift(bytes.subarray(end));
      resolve(bytes.subarray(0, end));
    };
    socket.on('data', onData).resume();
  });
}

function passwordLength(bytes: Buffer): number {
  const user = bytes[1] ?? 0;
  return bytes.length > 2 + user ? 3 + user + (bytes[2 + user] ?? 0) : 0;
}

function requestLength(bytes: Buffer): number {
  if (bytes.length < 5) return 0;
  return 6 + (bytes[3] === 1 ? 4 : bytes[3] === 4 ? 16 : 1 + (bytes[4] ?? 0));
}

function readHost(request: Buffer): string {
  if (request[3] === 1) return [...request.subarray(4, 8)].join('.');
  if (request[3] === 3) return request.toString('latin1', 5, request.length - 2);
  return (request.toString('hex', 4, 20).match(/.{4}/g) ?? []).join(':');
}

function tryConnect(host: string, port: number): Promise<Socket | null> {
  return new Promise((resolve) => {
    const socket = connect({ host, port, allowHalfOpen: true });
    socket.once('connect', () => resolve(socket)).on('error', () => resolve(null));
  });
}

function join(one: Socket, other: Socket): void {
  one.pipe(other);
  other.pipe(one);
}
