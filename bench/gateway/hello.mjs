// bench/gateway/hello.mjs: two first messages of the same length: a TLS ClientHello and a plain request.
import { Duplex } from 'node:stream';
import { connect } from 'node:tls';

/** The common padded length of a ClientHello. */
const LENGTH = 517;

/** The ClientHello of Node's own TLS, padded per RFC 7685. */
export async function clientHello(name) {
  const said = await new Promise((resolve) => {
    const wire = new Duplex({ read() {}, write: (bytes, _, done) => (resolve(bytes), done()) });
    connect({ socket: wire, servername: name, ALPNProtocols: ['http/1.1'] }).on('error', () => {});
  });
  const missing = LENGTH - said.length - 4;
  if (missing < 0) throw new Error(`a ClientHello of ${said.length} bytes`);
  const padding = Buffer.alloc(4 + missing);
  padding.writeUInt16BE(21, 0);
  padding.writeUInt16BE(missing, 2);
  const whole = Buffer.concat([said, padding]);
  whole.writeUInt16BE(LENGTH - 5, 3);
  whole.writeUIntBE(LENGTH - 9, 6, 3);
  const at = extensionsAt(said);
  whole.writeUInt16BE(said.readUInt16BE(at) + padding.length, at);
  return whole;
}

// Skips the record and handshake heads, version and random, then session, ciphers and compressions, each with its length.
function extensionsAt(hello) {
  const session = 5 + 4 + 2 + 32;
  const ciphers = session + 1 + hello[session];
  const compressions = ciphers + 2 + hello.readUInt16BE(ciphers);
  return compressions + 1 + hello[compressions];
}

export function plainRequest(name) {
  const request = (filler) => `GET / HTTP/1.1\r\nHost: ${name}\r\nX-Filler: ${filler}\r\n\r\n`;
  return Buffer.from(request('x'.repeat(LENGTH - request('').length)));
}
