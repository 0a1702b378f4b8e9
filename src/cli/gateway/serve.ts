// cli/gateway/serve.ts: `ags gateway serve`: runs the gateway in the foreground until a signal.
import { AgsError, EXIT } from '../../protocol/errors.ts';
import { serveGateway, tellReload } from '../../network/serve-gateway.ts';
import { socketPath, untilSignal } from './place.ts';
import type { Arguments, Context } from '../verb.ts';

export async function serve({ values }: Arguments, ctx: Context): Promise<number> {
  const text = (name: string): string | null => (typeof values[name] === 'string' ? values[name] : null);
  const lists = Array.isArray(values['rules']) ? values['rules'] : [];
  const socket = socketPath(values);
  if (text('config') === null && socket === null)
    throw new AgsError('usage.invalid', 'Where should the gateway listen?', {
      hint: 'For example: ags gateway serve --socket /run/ags/gateway.sock --rules allow-list.txt',
    });
  if (text('config') === null && lists.length === 0)
    throw new AgsError('usage.invalid', 'Which file has the rules?', {
      hint: 'Give a list of hosts (--rules allow-list.txt), or a file with the keys of ags.yaml (--config gateway.yaml).',
    });
  const say = (words: string): void => void ctx.stderr.write(`ags: ${words}\n`);
  const signal = untilSignal();
  const served = await serveGateway(ctx.host, { config: text('config'), lists, socket, log: text('log') }, say);
  process.on('SIGHUP', () => tellReload(served.reload, say));
  ctx.stdout.write('ready\n');
  say(`The gateway listens at ${served.places.join(', ')}.`);
  await signal;
  served.close();
  return EXIT.done;
}
