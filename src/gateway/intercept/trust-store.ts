// gateway/intercept/trust-store.ts: makes programs inside trust the sandbox's own authority: certificate bundles, a store for Java,
// and the variables that lead to them. Pure except for one hash; starts no TLS.
import { createHash } from 'node:crypto';

/** The machine's roots and ours: several of the variables below replace the roots instead of adding to them. */
export function combinedBundle(systemPem: string, caPem: string): string {
  const gap = systemPem === '' || systemPem.endsWith('\n') ? '' : '\n';
  return `${systemPem}${gap}${caPem}${caPem.endsWith('\n') ? '' : '\n'}`;
}

export interface TrustPaths {
  readonly bundle: string;
  /** Only the sandbox's own authority. */
  readonly ca: string;
  readonly java: string;
}

export function trustEnvironment(paths: TrustPaths): Record<string, string> {
  const { bundle, ca } = paths;
  return {
    // Node adds this to its roots.
    NODE_EXTRA_CA_CERTS: ca,
    SSL_CERT_FILE: bundle,
    CURL_CA_BUNDLE: bundle,
    REQUESTS_CA_BUNDLE: bundle,
    PIP_CERT: bundle,
    GIT_SSL_CAINFO: bundle,
    CARGO_HTTP_CAINFO: bundle,
    npm_config_cafile: bundle,
    DENO_CERT: ca,
    AWS_CA_BUNDLE: bundle,
    NIX_SSL_CERT_FILE: bundle,
    SYSTEM_CERTIFICATE_PATH: bundle,
    HEX_CACERTS_PATH: bundle,
    BUNDLE_SSL_CA_CERT: bundle,
    CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE: bundle,
    GRPC_DEFAULT_SSL_ROOTS_FILE_PATH: bundle,
    WEBSOCKET_CLIENT_CA_BUNDLE: bundle,
  };
}

/** For JAVA_TOOL_OPTIONS, which other code also adds to. */
export function javaTrustOptions(paths: TrustPaths, password: string): string[] {
  return [
    `-Djavax.net.ssl.trustStore=${paths.java}`,
    `-Djavax.net.ssl.trustStorePassword=${password}`,
    '-Djavax.net.ssl.trustStoreType=JKS',
  ];
}

/** In the JKS format, which every Java reads. The password protects nothing: certificates are not secret. */
export function javaTrustStore(pems: readonly string[], password: string): Buffer {
  const certificates = [...new Set(pems.flatMap(certificatesIn))];
  const head = Buffer.alloc(12);
  head.writeUInt32BE(0xfeed_feed, 0);
  head.writeUInt32BE(2, 4);
  head.writeUInt32BE(certificates.length, 8);
  const body = Buffer.concat([
    head,
    ...certificates.flatMap((base64, i) => entry(`ags-${i}`, Buffer.from(base64, 'base64'))),
  ]);
  const digest = createHash('sha1')
    .update(Buffer.from(password, 'utf16le').swap16())
    .update('Mighty Aphrodite')
    .update(body)
    .digest();
  return Buffer.concat([body, digest]);
}

function entry(alias: string, certificate: Buffer): Buffer[] {
  const kind = Buffer.alloc(4);
  kind.writeUInt32BE(2);
  // No creation time.
  const at = Buffer.alloc(8);
  const length = Buffer.alloc(4);
  length.writeUInt32BE(certificate.length);
  return [kind, shortText(alias), at, shortText('X.509'), length, certificate];
}

function shortText(text: string): Buffer {
  const length = Buffer.alloc(2);
  length.writeUInt16BE(text.length);
  return Buffer.concat([length, Buffer.from(text, 'latin1')]);
}

function certificatesIn(pem: string): string[] {
  const found = pem.matchAll(/-----BEGIN (?:TRUSTED )?CERTIFICATE-----([A-Za-z0-9+/=\s]+)-----END/g);
  return [...found].map((match) => (match[1] ?? '').replaceAll(/\s/g, ''));
}
