// cli/gateway/place.ts: the addresses and the signal handling that the `ags gateway` commands share.
import { resolve } from 'node:path';
import { AgsError } from '../../protocol/errors.ts';
import type { Arguments } from '../verb.ts';

// The kernel allows 107 bytes, and the admin socket beside it has a suffix.
const LONGEST = 107 - '.admin'.length;

export function socketPath(values: Arguments['values']): string | null {
  const given = values['socket'];
  if (typeof given !== 'string') return null;
  const path = resolve(given);
  if (Buffer.byteLength(path) > LONGEST)
    throw new AgsError('usage.invalid', `The path of a socket has at most ${LONGEST} bytes: ${path}`);
  return path;
}

/** Loopback only, because every client that can connect can use the gateway. */
export function listenPlace(values: Arguments['values']): { host: string; port: number } {
  const given = typeof values['listen'] === 'string' ? values['listen'] : '127.0.0.1:3128';
  const [, host = '', digits = ''] = /^\[?(127(?:\.\d{1,3}){3}|::1)\]?:(\d{1,5})$/.exec(given) ?? [];
  if (host !== '' && Number(digits) > 0 && Number(digits) < 65_536) return { host, port: Number(digits) };
  throw new AgsError('usage.invalid', `"${given}" is not a loopback address with a port.`, {
    hint: 'For example: --listen 127.0.0.1:3128',
  });
}

/** Call it before anything else: the first process of a container receives a signal only if it has a handler. */
export function untilSignal(): Promise<void> {
  return new Promise((resolve) => {
    for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => resolve());
  });
}
