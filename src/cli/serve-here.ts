// cli/serve-here.ts: what `ags serve` and `ags web` have in common.
import { AgsError, EXIT } from '../protocol/errors.ts';
import { SERVER_PORT } from '../protocol/network.ts';
import type { Served } from '../server/serve.ts';
import { pagePlace } from './page-place.ts';
import { readGiven } from './read-given.ts';
import { readVersion } from './version.ts';
import type { Arguments, Context, Option } from './verb.ts';

export const SERVE_OPTIONS = {
  port: { type: 'string', short: 'p', value: 'number', about: `another port than ${SERVER_PORT}; 0: any that is free` },
  host: { type: 'string', value: 'address', about: 'another address than 127.0.0.1; needs --cert and --key' },
  cert: { type: 'string', value: 'file', about: 'certificate for TLS, with its chain (PEM)' },
  key: { type: 'string', value: 'file', about: 'its private key (PEM)' },
  name: { type: 'string', multiple: true, value: 'host', about: 'with --host: a name that it is reached under' },
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
    throw new AgsError('usage.invalid', `Other machines can reach ${host}, so it is served with TLS only.`, {
      hint: 'Give a certificate: --cert cert.pem --key key.pem\nOr leave --host out, and come through a tunnel: ssh -L 7780:127.0.0.1:7780 <this machine>',
    });
  return serve(ctx.world, {
    host,
    port: portOf(args),
    version: readVersion(),
    page: pagePlace(),
    onBug: (error) =>
      ctx.stderr.write(`ags: this is a bug in ags.\n${error instanceof Error ? (error.stack ?? '') : String(error)}\n`),
    names: (values['name'] as string[] | undefined) ?? [],
    ...(typeof cert === 'string' && typeof key === 'string'
      ? { tls: { cert: readGiven('--cert', cert), key: readGiven('--key', key) } }
      : {}),
  });
}

/** Until Ctrl-C or a signal. */
export async function stay(served: Served): Promise<number> {
  await new Promise<void>((resolve) => {
    for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(name, () => resolve());
  });
  await served.close();
  return EXIT.done;
}
