// cli/gateway/place.ts: the places that the words of `ags gateway` share.
import { resolve } from 'node:path';
import { AgsError } from '../../protocol/errors.ts';
import type { Arguments } from '../verb.ts';

// The kernel's own limit, with the ending of the socket beside it.
const LONGEST = 107 - '.admin'.length;

export function socketPath(values: Arguments['values']): string | null {
  const given = values['socket'];
  if (typeof given !== 'string') return null;
  const path = resolve(given);
  if (Buffer.byteLength(path) > LONGEST)
    throw new AgsError('usage.invalid', `The path of a socket has at most ${LONGEST} bytes: ${path}`);
  return path;
}

/** On loopback only: whoever can connect here can use the gateway. */
export function listenPlace(values: Arguments['values']): { host: string; port: number } {
  const given = typeof values['listen'] === 'string' ? values['listen'] : '127.0.0.1:3128';
  const [, host = '', digits = ''] = /^\[?(127(?:\.\d{1,3}){3}|::1)\]?:(\d{1,5})$/.exec(given) ?? [];
  if (host !== '' && Number(digits) > 0 && Number(digits) < 65_536) return { host, port: Number(digits) };
  throw new AgsError('usage.invalid', `"${given}" is not an address of loopback with a port.`, {
    hint: 'For example: --listen 127.0.0.1:3128',
  });
}
