// gateway/intercept/certificate.ts: the certificate authority of one sandbox, and its certificates for inspected hosts.
// It encodes the few DER types that a certificate needs.
// Invariant: keys exist only in this process; the authority can sign only server certificates, and expires.
import { createHash, generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto';
import { isIP } from 'node:net';
import { createSecureContext, type SecureContext } from 'node:tls';

export interface Authority {
  readonly certificatePem: string;
  /** `host`: a name or an address in canonical spelling. `cert`: the leaf followed by the authority. */
  leafFor(host: string): { readonly key: string; readonly cert: string };
  contextFor(host: string): SecureContext;
}

const DAY_MS = 86_400_000;
const MAX_HOSTS = 256;

export function createAuthority(options: { commonName: string; days: number; now: Date }): Authority {
  const issuer = createKey();
  // One key for all leaves: separate keys would protect nothing, since all are in one process.
  const leaf = createKey();
  const key = leaf.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
  const validity = sequence(
    // A client's clock may be behind.
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
  // Positive, and without a leading zero byte, which DER forbids.
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

// A common name has at most 64 characters. Only people read it.
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
  // An authority that cannot have another one below it.
  extension(BASIC_CONSTRAINTS, sequence(TRUE, integer(Buffer.of(0))), true),
  // It signs certificates and revocation lists.
  extension(KEY_USAGE, bits(Buffer.of(0b0000_0110), 1), true),
];

function leafExtensions(host: string): readonly Buffer[] {
  return [
    extension(BASIC_CONSTRAINTS, sequence(), true),
    extension(KEY_USAGE, bits(Buffer.of(0b1000_0000), 7), true),
    // Server authentication.
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

// Canonical IPv6 is hex groups with at most one "::".
function addressBytes(host: string): Buffer {
  const [left = '', right = ''] = host.split('::');
  const head = left.split(':').filter((group) => group !== '');
  const tail = right.split(':').filter((group) => group !== '');
  const groups = [...head, ...Array<string>(8 - head.length - tail.length).fill('0'), ...tail];
  return Buffer.from(groups.map((group) => group.padStart(4, '0')).join(''), 'hex');
}

/** Keeps the most recently used. */
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

function der(tag: number, ...contents: readonly Buffer[]): Buffer {
  const length = contents.reduce((sum, content) => sum + content.length, 0);
  return Buffer.concat([Buffer.from([tag, ...lengthBytes(length)]), ...contents]);
}

function lengthBytes(length: number): number[] {
  if (length < 0x80) return [length];
  return length < 0x1_00 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
}

function sequence(...contents: readonly Buffer[]): Buffer {
  return der(0x30, ...contents);
}

/** Never negative. */
function integer(bytes: Buffer): Buffer {
  return der(0x02, (bytes[0] ?? 0) >= 0x80 ? Buffer.concat([Buffer.of(0), bytes]) : bytes);
}

function objectId(dotted: string): Buffer {
  const [first = 0, second = 0, ...rest] = dotted.split('.').map(Number);
  const bytes = rest.flatMap((part) => {
    const groups = [part & 0x7f];
    for (let left = part >>> 7; left > 0; left >>>= 7) groups.unshift((left & 0x7f) | 0x80);
    return groups;
  });
  return der(0x06, Buffer.from([first * 40 + second, ...bytes]));
}

function octets(content: Buffer): Buffer {
  return der(0x04, content);
}

/** `unused`: how many bits of the last byte do not count. */
function bits(content: Buffer, unused = 0): Buffer {
  return der(0x03, Buffer.of(unused), content);
}

function utf8(text: string): Buffer {
  return der(0x0c, Buffer.from(text));
}

/** UTCTime until 2049, GeneralizedTime from then on (RFC 5280). */
function time(date: Date): Buffer {
  const digits = `${date.toISOString().replaceAll(/[-:T]|\..*$/g, '')}Z`;
  return date.getUTCFullYear() < 2050 ? der(0x17, Buffer.from(digits.slice(2))) : der(0x18, Buffer.from(digits));
}

function toPem(certificate: Buffer): string {
  const lines = certificate.toString('base64').match(/.{1,64}/g) ?? [];
  return `-----BEGIN CERTIFICATE-----\n${lines.join('\n')}\n-----END CERTIFICATE-----\n`;
}
