// gateway/answer.ts: what the gateway itself says to a client in HTTP: one sentence, and how it closes so that it is heard.
import { send } from './byte-source.ts';
import type { End } from './secure-ends.ts';

const LINGER_MS = 2000;

/** The sentence stands in the reason phrase too, which is all that many programs show of a failed request. */
export async function answer(
  client: End,
  given: { status: number; sentence: string; kept: boolean; bare: boolean },
): Promise<boolean> {
  const phrase = given.sentence.replaceAll(/[^\x20-\x7e]/g, '?').slice(0, 300);
  const body = Buffer.from(`${given.sentence}\n`);
  const head = [
    `HTTP/1.1 ${given.status} ${phrase}`,
    'Content-Type: text/plain; charset=utf-8',
    `Content-Length: ${body.length}`,
    'Cache-Control: no-store',
    `Connection: ${given.kept ? 'keep-alive' : 'close'}`,
    '\r\n',
  ].join('\r\n');
  return send(client.socket, given.bare ? Buffer.from(head) : Buffer.concat([Buffer.from(head), body]));
}

/** Closing while the client still sends would make its kernel throw the answer away, so what it sends is read for a while. */
export async function closeGently(client: End): Promise<void> {
  const { socket, source } = client;
  if (socket.destroyed) return;
  await new Promise<void>((resolve) => {
    const timer = setTimeout(() => socket.destroy(), LINGER_MS);
    socket.once('close', () => {
      clearTimeout(timer);
      resolve();
    });
    socket.end();
    source.discard();
  });
}
