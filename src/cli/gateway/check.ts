// cli/gateway/check.ts: `ags gateway check`: health checks for a gateway and its listener in containers.
import { connect } from 'node:net';
import { AgsError, EXIT } from '../../protocol/errors.ts';
import { hostAndPort } from '../../protocol/host-name.ts';
import { askAdmin } from '../../gateway/admin.ts';
import { adminSocket } from '../../network/serve-gateway.ts';
import { listenPlace, socketPath } from './place.ts';
import type { Arguments, Context } from '../verb.ts';

const WAIT_MS = 5000;

export async function check({ values }: Arguments, ctx: Context): Promise<number> {
  const socket = socketPath(values);
  if (socket === null && values['listen'] === undefined)
    throw new AgsError('usage.invalid', 'What should be checked?', {
      hint: 'For example: ags gateway check --socket /run/ags/gateway.sock',
    });
  if (socket !== null && !(await askAdmin(adminSocket(socket), WAIT_MS)))
    throw new AgsError('backend.unavailable', `No gateway answers at ${socket}.`, {
      hint: `Start it: ags gateway serve --socket ${socket} --rules <file>`,
    });
  if (values['listen'] !== undefined) {
    const place = listenPlace(values);
    if (!(await isOpen(place)))
      throw new AgsError('backend.unavailable', `No listener answers at ${hostAndPort(place.host, place.port)}.`, {
        hint: 'Start it: ags gateway listener --socket <path>',
      });
  }
  ctx.stdout.write('ok\n');
  return EXIT.done;
}

function isOpen(place: { host: string; port: number }): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ ...place, timeout: WAIT_MS });
    const say = (open: boolean): void => {
      socket.destroy();
      resolve(open);
    };
    socket.once('connect', () => say(true));
    socket.once('timeout', () => say(false));
    socket.once('error', () => say(false));
  });
}
