// run/network/serve-names.ts: a door at which names are asked for.
import type { Socket as Datagrams } from 'node:dgram';

/** null: no answer. Who gets none asks again. */
export function serveNames(door: Datagrams, answer: (question: Buffer) => Promise<Buffer | null>): void {
  door.on('message', (question, peer) => {
    answer(question)
      .then((said) => {
        if (said !== null) door.send(said, peer.port, peer.address, () => undefined);
      })
      // Also of a door that was closed while the answer was looked for.
      .catch(() => undefined);
  });
  door.on('error', () => undefined);
}
