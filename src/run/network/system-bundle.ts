// run/network/system-bundle.ts: the certificate authorities that this machine and its user trust.
import { readFileSync, realpathSync, statSync } from 'node:fs';
import type { HostContext } from '../host-context.ts';

const BUNDLES = [
  '/etc/ssl/certs/ca-certificates.crt',
  '/etc/pki/tls/certs/ca-bundle.crt',
  '/etc/ssl/ca-bundle.pem',
  '/etc/ssl/cert.pem',
];

/** The authorities of this machine's store, and those that the user added. */
export function systemBundle(context: Pick<HostContext, 'env'>): string {
  const own = [context.env['SSL_CERT_FILE'], context.env['NODE_EXTRA_CA_CERTS']].flatMap(
    (path) => readIfThere(path) ?? [],
  );
  const system = BUNDLES.map(readIfThere).find((text) => text !== undefined);
  return [...(system === undefined ? [] : [system]), ...own].join('\n');
}

/** The path of that store inside: a sandbox's /etc is a copy of the host's. null: it has none there. */
export function bundleInside(): string | null {
  const found = BUNDLES.find((path) => statSync(path, { throwIfNoEntry: false })?.isFile() === true);
  const real = found === undefined ? '' : realpathSync(found);
  return real.startsWith('/etc/') ? real : null;
}

export function splitPem(text: string): string[] {
  return [...new Set(text.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [])];
}

function readIfThere(path: string | undefined): string | undefined {
  if (path === undefined || path === '') return undefined;
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}
