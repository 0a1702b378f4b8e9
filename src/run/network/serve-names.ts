// run/network/serve-names.ts: answers DNS queries at a listener.
import type { Socket as Datagrams } from 'node:dgram';

/** null: no answer; the client asks again. */
export function serveNames(listener: Datagrams, answer: (question: Buffer) => Promise<Buffer | null>): void {
  listener.on('message', (question, peer) => {
    answer(question)
      .then((said) => {
        if (said !== null) listener.send(said, peer.port, peer.address, () => undefined);
      })
      // The listener may have been closed before the answer was ready.
      .catch(() => undefined);
  });
  listener.on('error', () => undefined);
}
