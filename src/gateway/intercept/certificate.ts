// gateway/intercept/certificate.ts: the authority of one sandbox and the certificates it writes for hosts whose requests are looked into.
// Invariant: keys live in this process only; the authority can sign for servers and for nothing else, and dies with its days.
import { createHash, generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto';
import { isIP } from 'node:net';
import { createSecureContext, type SecureContext } from 'node:tls';
import { bits, der, integer, objectId, octets, sequence, time, toPem, utf8 } from './der.ts';

export interface Authority {
  readonly certificatePem: string;
  /** A name or an address in its canonical spelling. `cert` is the leaf and the authority behind it. */
  leafFor(host: string): { readonly key: string; readonly cert: string };
  contextFor(host: string): SecureContext;
}

const DAY_MS = 86_400_000;
const MAX_HOSTS = 256;

export function createAuthority(options: { commonName: string; days: number; now: Date }): Authority {
  const issuer = createKey();
  // One key for all leaves: a key of its own would protect nothing, as all lie in one process.
  const leaf = createKey();
  const key = leaf.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
  const validity = sequence(
    // A client's clock may be behind ours.
    time(new Date(options.now.getTime() - DAY_MS)),
    time(new Date(options.now.getTime() + options.days * DAY_MS)),
  );
  const write = (subject: string, owner: Key, extensions: readonly Buffer[]): string =>
    toPem(certificate({ issuerName: options.commonName, issuer, subject, owner, validity, extensions }));
  const certificatePem = write(options.commonName, issuer, authorityExtensions);
  const leaves = createCache((host) => ({
    key,
    cert: write(subjectOf(host), leaf, leafExtensions(host)) + certificatePem,
  }));
  const contexts = createCache((host) => createSecureContext({ ...leaves(host), minVersion: 'TLSv1.2' }));
  return { certificatePem, leafFor: leaves, contextFor: contexts };
}

interface Key {
  readonly privateKey: KeyObject;
  /** SubjectPublicKeyInfo. */
  readonly info: Buffer;
  readonly id: Buffer;
}

function createKey(): Key {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const info = publicKey.export({ type: 'spki', format: 'der' });
  return { privateKey, info, id: createHash('sha256').update(info).digest().subarray(0, 20) };
}

const ECDSA_WITH_SHA256 = sequence(objectId('1.2.840.10045.4.3.2'));

function certificate(parts: {
  issuerName: string;
  issuer: Key;
  subject: string;
  owner: Key;
  validity: Buffer;
  extensions: readonly Buffer[];
}): Buffer {
  const serial = randomBytes(16);
  // Positive, and no zero byte in front, which DER forbids.
  serial[0] = ((serial[0] ?? 0) & 0x7f) | 0x40;
  const body = sequence(
    der(0xa0, integer(Buffer.of(2))),
    integer(serial),
    ECDSA_WITH_SHA256,
    name(parts.issuerName),
    parts.validity,
    name(parts.subject),
    parts.owner.info,
    der(
      0xa3,
      sequence(
        ...parts.extensions,
        extension('2.5.29.14', octets(parts.owner.id)),
        extension('2.5.29.35', sequence(der(0x80, parts.issuer.id))),
      ),
    ),
  );
  return sequence(body, ECDSA_WITH_SHA256, bits(sign('sha256', body, parts.issuer.privateKey)));
}

function name(commonName: string): Buffer {
  return sequence(der(0x31, sequence(objectId('2.5.4.3'), utf8(commonName))));
}

// A common name has at most 64 characters. Nobody looks at it but people.
function subjectOf(host: string): string {
  return host.length <= 64 ? host : 'a host with a long name';
}

function extension(id: string, value: Buffer, critical = false): Buffer {
  return sequence(objectId(id), ...(critical ? [TRUE] : []), octets(value));
}

const TRUE = der(0x01, Buffer.of(0xff));
const BASIC_CONSTRAINTS = '2.5.29.19';
const KEY_USAGE = '2.5.29.15';

const authorityExtensions: readonly Buffer[] = [
  // An authority with no further one below it.
  extension(BASIC_CONSTRAINTS, sequence(TRUE, integer(Buffer.of(0))), true),
  // Signs certificates and lists of revoked ones.
  extension(KEY_USAGE, bits(Buffer.of(0b0000_0110), 1), true),
];

function leafExtensions(host: string): readonly Buffer[] {
  return [
    extension(BASIC_CONSTRAINTS, sequence(), true),
    extension(KEY_USAGE, bits(Buffer.of(0b1000_0000), 7), true),
    // For servers.
    extension('2.5.29.37', sequence(objectId('1.3.6.1.5.5.7.3.1'))),
    extension('2.5.29.17', sequence(alternativeName(host))),
  ];
}

function alternativeName(host: string): Buffer {
  switch (isIP(host)) {
    case 4:
      return der(0x87, Buffer.from(host.split('.').map(Number)));
    case 6:
      return der(0x87, addressBytes(host));
    default:
      return der(0x82, Buffer.from(host, 'latin1'));
  }
}

// The canonical spelling of IPv6 is hex groups with one "::" at most.
function addressBytes(host: string): Buffer {
  const [left = '', right = ''] = host.split('::');
  const head = left.split(':').filter((group) => group !== '');
  const tail = right.split(':').filter((group) => group !== '');
  const groups = [...head, ...Array<string>(8 - head.length - tail.length).fill('0'), ...tail];
  return Buffer.from(groups.map((group) => group.padStart(4, '0')).join(''), 'hex');
}

/** The last used ones stay. */
function createCache<T>(make: (host: string) => T): (host: string) => T {
  const kept = new Map<string, T>();
  return (host) => {
    const value = kept.get(host) ?? make(host);
    kept.delete(host);
    kept.set(host, value);
    const [oldest] = kept.keys();
    if (kept.size > MAX_HOSTS && oldest !== undefined) kept.delete(oldest);
    return value;
  };
}
