// cli/gateway/engine.ts: `ags gateway engine`: the engine beside a dev container, as the first process of its own container.
import { AgsError, EXIT } from '../../protocol/errors.ts';
import { hostAndPort } from '../../protocol/host-name.ts';
import { openDevEngine } from '../../images/devcontainer/engine.ts';
import { listenPlace, untilSignal } from './place.ts';
import type { Arguments, Context } from '../verb.ts';

export async function serveEngine({ values }: Arguments, ctx: Context): Promise<number> {
  const signal = untilSignal();
  const { host, port } = listenPlace({ listen: '127.0.0.1:2375', ...values });
  const place = hostAndPort(host, port);
  await using engine = await openDevEngine(ctx.host, place, (text) => void ctx.stderr.write(`ags: ${text}\n`));
  ctx.stdout.write('ready\n');
  ctx.stderr.write(`ags: A private Docker daemon listens at ${place}.\n`);
  const words = await Promise.race([signal, engine.ended]);
  if (typeof words !== 'string') return EXIT.done;
  // The engine can start only once in a container; the container's restart policy starts both again.
  throw new AgsError('backend.unavailable', `The engine has ended: ${words === '' ? 'it printed nothing' : words}`);
}
