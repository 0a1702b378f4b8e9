// bench/gateway/tls-ends.mjs: a TLS origin and its clients in one process, separate from the measured one. Its argument: the address of the
// proxy, the host, the mode (`fresh`: a connection per request), the duration, and the processes whose processor time counts. Prints one line
// of JSON.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { connect as connectTcp } from 'node:net';
import { connect as connectTls, createServer } from 'node:tls';

const { load, via, name, port, certificate, key, fresh, many, seconds, warmUp, pids } = JSON.parse(process.argv[2]);
const BODY = 'the answer of the origin.\n';
const ANSWER = `HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: ${BODY.length}\r\n\r\n${BODY}`;
const QUESTION = `GET /v1/thing HTTP/1.1\r\nHost: ${name}:${port}\r\n\r\n`;

const origin = createServer({ cert: readFileSync(certificate), key: readFileSync(key) }, (socket) => {
  let asked = '';
  socket.setNoDelay(true);
  socket.on('error', () => socket.destroy());
  socket.on('data', (data) => {
    asked += data.toString('latin1');
    for (let end; (end = asked.indexOf('\r\n\r\n')) >= 0; asked = asked.slice(end + 4)) socket.write(ANSWER);
  });
});
await new Promise((resolve) => origin.listen(port, '127.0.0.1', resolve));

let until = performance.now() + warmUp * 1000;
await Promise.all(Array.from({ length: many }, work));
const cpuBefore = processorTime();
const began = performance.now();
until = began + seconds * 1000;
const counts = await Promise.all(Array.from({ length: many }, work));
const count = counts.reduce((sum, one) => sum + one, 0);
const found = {
  count,
  seconds: (performance.now() - began) / 1000,
  cpuUs: processorTime() - cpuBefore,
};
process.stdout.write(`${JSON.stringify(found)}\n`);
process.exit(0);

function processorTime() {
  return Number(execFileSync(load, ['processor', `pids=${pids.join(',')}`], { encoding: 'utf8' }));
}

async function work() {
  let count = 0;
  for (let socket = null; performance.now() < until; count += 1) {
    socket ??= await open();
    await request(socket);
    if (fresh) socket.destroy();
    if (fresh) socket = null;
  }
  return count;
}

async function open() {
  const tcp = connectTcp({ host: '127.0.0.1', port: via, noDelay: true });
  tcp.write(`CONNECT ${name}:${port} HTTP/1.1\r\nHost: ${name}:${port}\r\n\r\n`);
  const head = await next(tcp, (text) => text.endsWith('\r\n\r\n'));
  if (!/^HTTP\/1\.[01] 200 /.test(head)) throw new Error(`refused: ${head}`);
  // An inspecting gateway has its own authority, and its tests verify how it checks the origin.
  const socket = connectTls({ socket: tcp, servername: name, rejectUnauthorized: false });
  await new Promise((resolve, reject) => socket.once('secureConnect', resolve).once('error', reject));
  return socket;
}

async function request(socket) {
  socket.write(QUESTION);
  const answer = await next(socket, (text) => text.endsWith(BODY));
  if (!answer.startsWith('HTTP/1.1 200 ')) throw new Error(`not the answer: ${answer}`);
}

function next(socket, isWhole) {
  return new Promise((resolve, reject) => {
    let text = '';
    const finish = (done) => {
      socket.off('data', onData).off('error', reject).off('close', onClose);
      done();
    };
    const onClose = () => finish(() => reject(new Error(`closed after: ${text}`)));
    const onData = (data) => {
      text += data.toString('latin1');
      if (isWhole(text)) finish(() => resolve(text));
    };
    socket.on('data', onData).on('error', reject).on('close', onClose);
  });
}
