// cli/gateway/listener.ts: `ags gateway listener`: forwards loopback connections to a gateway's socket, as the first process of a
// network namespace that has only loopback.
import { AgsError, EXIT } from '../../protocol/errors.ts';
import { createForwarder } from '../../gateway/front/forward.ts';
import { listenAt } from '../../network/listen.ts';
import { hostAndPort } from '../../protocol/host-name.ts';
import { listenPlace, socketPath, untilSignal } from './place.ts';
import type { Arguments, Context } from '../verb.ts';

export async function openListener({ values }: Arguments, ctx: Context): Promise<number> {
  const socket = socketPath(values);
  if (socket === null)
    throw new AgsError('usage.invalid', 'Which gateway should the listener connect to?', {
      hint: 'For example: ags gateway listener --socket /run/ags/gateway.sock',
    });
  const signal = untilSignal();
  const { host, port } = listenPlace(values);
  const place = hostAndPort(host, port);
  const forwarder = createForwarder(socket);
  using _ = await listenAt(place, forwarder.server);
  ctx.stdout.write('ready\n');
  ctx.stderr.write(`ags: ${place} forwards to the gateway at ${socket}.\n`);
  await signal;
  forwarder.close();
  return EXIT.done;
}
