// protocol/host-name.ts: one spelling for each host name and address.
// Invariant: texts that any resolver or client treats as the same host become one spelling; an ambiguous text becomes null.

export interface HostName {
  readonly kind: 'name' | 'ip';
  /** Lower case, no trailing dot, no brackets; IPv6 in its shortest form. */
  readonly host: string;
}

const IPV4 = /^(?:(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(?:\.|$)){4}$/;
const LABEL = /^[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?$/;

/** `[::1]`, `10.0.0.1`, `Example.COM.`; null for anything else, including odd spellings of addresses. */
export function canonicalHost(text: string): HostName | null {
  if (text.startsWith('[')) {
    if (!text.endsWith(']')) return null;
    const inner = text.slice(1, -1);
    const host = /^[0-9a-fA-F:.]{2,45}$/.test(inner) ? shortIPv6(inner) : null;
    return host === null ? null : { kind: 'ip', host };
  }
  if (text.length > 254) return null;
  const host = (text.endsWith('.') ? text.slice(0, -1) : text).toLowerCase();
  if (IPV4.test(host)) return text.endsWith('.') ? null : { kind: 'ip', host };
  if (host.length > 253) return null;
  const labels = host.split('.');
  // Some resolvers read a last part that begins with a digit as a number: 127.1, 0x7f.1, 2130706433.
  if (!labels.every((label) => LABEL.test(label)) || /^[0-9]/.test(labels.at(-1) ?? '')) return null;
  return { kind: 'name', host };
}

function shortIPv6(address: string): string | null {
  const url = `http://[${address}]/`;
  return URL.canParse(url) ? new URL(url).hostname.slice(1, -1) : null;
}

/** The form for a URL or a Host header. */
export function hostInUrl(host: string): string {
  return host.includes(':') ? `[${host}]` : host;
}

/** Parses a host as `HostName` and rules store it, without brackets. */
export function readBareHost(host: string): HostName | null {
  return canonicalHost(hostInUrl(host));
}

/** "example.com:443", "[::1]:22". */
export function hostAndPort(host: string, port: number): string {
  return `${hostInUrl(host)}:${port}`;
}
