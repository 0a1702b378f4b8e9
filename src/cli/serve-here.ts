// cli/serve-here.ts: the options and the server that `ags serve` and `ags web` share.
import { fileURLToPath } from 'node:url';
import { AgsError, EXIT } from '../protocol/errors.ts';
import { SERVER_PORT } from '../protocol/network.ts';
import type { Served } from '../server/serve.ts';
import { readGiven } from './read-given.ts';
import { readVersion } from '../lib/package-file.ts';
import type { Arguments, Context, Option } from './verb.ts';

export const SERVE_OPTIONS = {
  port: {
    type: 'string',
    short: 'p',
    value: 'number',
    about: `port to use instead of ${SERVER_PORT}; 0: any free port`,
  },
  host: { type: 'string', value: 'address', about: 'address to use instead of 127.0.0.1; needs --cert and --key' },
  cert: { type: 'string', value: 'file', about: 'TLS certificate with its chain (PEM)' },
  key: { type: 'string', value: 'file', about: 'private key of the certificate (PEM)' },
  name: { type: 'string', multiple: true, value: 'host', about: 'with --host: a host name of this server' },
} as const satisfies Record<string, Option>;

export function portOf({ values }: Arguments): number {
  const text = values['port'];
  if (text === undefined) return SERVER_PORT;
  if (typeof text === 'string' && /^\d{1,5}$/.test(text) && Number(text) <= 65_535) return Number(text);
  throw new AgsError('usage.invalid', `--port is a number up to 65535, not "${String(text)}".`);
}

export async function serveHere(args: Arguments, ctx: Context): Promise<Served> {
  const { serve, LOOPBACK } = await import('../server/serve.ts');
  const { values } = args;
  const host = typeof values['host'] === 'string' ? values['host'] : '127.0.0.1';
  const [cert, key] = [values['cert'], values['key']];
  if (!LOOPBACK.includes(host) && (typeof cert !== 'string' || typeof key !== 'string'))
    throw new AgsError('usage.invalid', `Other machines can reach ${host}, so ags serves it with TLS only.`, {
      hint: 'Give a certificate: --cert cert.pem --key key.pem\nOr leave out --host and use a tunnel: ssh -L 7780:127.0.0.1:7780 <this machine>',
    });
  return serve(ctx.host, {
    host,
    port: portOf(args),
    version: readVersion(),
    page: fileURLToPath(new URL('../../dist/web', import.meta.url)),
    onBug: (error) =>
      ctx.stderr.write(`ags: this is a bug in ags.\n${error instanceof Error ? (error.stack ?? '') : String(error)}\n`),
    names: (values['name'] as string[] | undefined) ?? [],
    ...(typeof cert === 'string' && typeof key === 'string'
      ? { tls: { cert: readGiven('--cert', cert), key: readGiven('--key', key) } }
      : {}),
  });
}

/** Serves until Ctrl-C or a signal. */
export async function stay(served: Served): Promise<number> {
  await new Promise<void>((resolve) => {
    for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(name, () => resolve());
  });
  await served.close();
  return EXIT.done;
}
