// sandbox/nested/egress-network.ts: the egress network between the containers of nested Docker and the gateway. It has listeners and
// nothing else.
// Invariant: traffic that a container sends there reaches a listener of the runner or nothing. The network has two interfaces: the way
// in, and its own loopback.
import type { Listener } from '../../protocol/spec.ts';

/**
 * 100.64.0.0/10 is reserved for carriers (RFC 6598): no engine creates networks in it. The first half is the egress network, which owns
 * all of those addresses (FIRST_CONTAINER_NAME is the first that stands for a name). The link between engine and egress network is in the
 * second half. The engine's end of the link covers all of it, so the engine needs no route.
 */
const EGRESS = { address: '100.64.0.1', mask: '255.224.0.0' } as const;
const EGRESS_END = { name: 'engine', address: '100.96.0.1', mask: '255.255.255.252' } as const;
const ENGINE_END = { name: 'ags0', address: '100.96.0.2', mask: '255.192.0.0' } as const;

/** The interfaces that the engine may have before it starts. */
export const ENGINE_INTERFACES = ['lo', ENGINE_END.name] as const;

/** The name server for containers. */
export const EGRESS_NAMES = EGRESS.address;

/** As in a sandbox: a proxy for programs that use one, a name server, and the ports that its addresses lead to. */
export const EGRESS_LISTENERS: readonly Listener[] = [
  { name: 'proxy', protocol: 'tcp', address: EGRESS.address, port: 3128 },
  { name: 'tls', protocol: 'tcp', address: '0.0.0.0', port: 443 },
  { name: 'web', protocol: 'tcp', address: '0.0.0.0', port: 80 },
  { name: 'names', protocol: 'udp', address: EGRESS.address, port: 53 },
];

/** Interface name, address and mask, as the user-namespace helper reads them. */
export const EGRESS_INTERFACES = {
  EGRESS: `lo ${EGRESS.address} ${EGRESS.mask}`,
  EGRESS_END: Object.values(EGRESS_END).join(' '),
  ENGINE_END: Object.values(ENGINE_END).join(' '),
} as const;
