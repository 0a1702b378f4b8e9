// cli/gateway/listener.ts: `ags gateway door`: the first process of a network namespace that has nothing but loopback.
import { AgsError, EXIT } from '../../protocol/errors.ts';
import { createForwarder } from '../../gateway/front/forward.ts';
import { listenAt } from '../../network/listen.ts';
import { hostAndPort } from '../../protocol/host-name.ts';
import { listenPlace, socketPath } from './place.ts';
import { untilSignal } from '../until-signal.ts';
import type { Arguments, Context } from '../verb.ts';

export async function openDoor({ values }: Arguments, ctx: Context): Promise<number> {
  const socket = socketPath(values);
  if (socket === null)
    throw new AgsError('usage.invalid', 'Which gateway does the door lead to?', {
      hint: 'For example: ags gateway door --socket /run/ags/gateway.sock',
    });
  const signal = untilSignal();
  const { host, port } = listenPlace(values);
  const place = hostAndPort(host, port);
  const forwarder = createForwarder(socket);
  using _ = await listenAt(place, forwarder.server);
  ctx.stdout.write('ready\n');
  ctx.stderr.write(`ags: ${place} leads to the gateway at ${socket}.\n`);
  await signal;
  forwarder.close();
  return EXIT.done;
}
