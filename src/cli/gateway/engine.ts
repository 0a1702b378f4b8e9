// cli/gateway/engine.ts: `ags gateway engine`: the engine beside a dev container, as the first program of a container of its own.
import { AgsError, EXIT } from '../../protocol/errors.ts';
import { hostAndPort } from '../../protocol/host-name.ts';
import { openDevEngine } from '../../images/devcontainer/engine.ts';
import { listenPlace } from './place.ts';
import { untilSignal } from '../until-signal.ts';
import type { Arguments, Context } from '../verb.ts';

export async function serveEngine({ values }: Arguments, ctx: Context): Promise<number> {
  const signal = untilSignal();
  const { host, port } = listenPlace({ listen: '127.0.0.1:2375', ...values });
  const place = hostAndPort(host, port);
  await using engine = await openDevEngine(ctx.world, place, (text) => void ctx.stderr.write(`ags: ${text}\n`));
  ctx.stdout.write('ready\n');
  ctx.stderr.write(`ags: ${place} leads to an engine of its own.\n`);
  const words = await Promise.race([signal, engine.ended]);
  if (typeof words !== 'string') return EXIT.done;
  // It can be started but once: whoever started this container starts it again.
  throw new AgsError('backend.unavailable', `The engine has ended: ${words === '' ? 'it said nothing' : words}`);
}
