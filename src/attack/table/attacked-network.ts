// attack/table/attacked-network.ts: what the attacked sandbox's network has besides the user's own rules: hosts of ours, allowed in every
// possible way, secrets for some of them, and a proxy in between.
import type { SecretRule, UpstreamProxy } from '../../protocol/network.ts';
import { DOMAIN, type Origin } from './origin.ts';

export interface AttackedNetwork {
  /** In the notation of the configuration. */
  readonly allow: readonly string[];
  readonly deny: readonly string[];
  readonly addresses: readonly string[];
  readonly dns: readonly string[];
  readonly secrets: readonly SecretRule[];
  readonly upstreams: readonly UpstreamProxy[];
}

/** Variables of ags itself with the value of the secret, and with user and password of the proxy. */
export const SECRET_VARIABLE = 'AGS_ATTACK_SECRET';
export const PROXY_VARIABLE = 'AGS_ATTACK_PROXY';

/** `loopbackPort`: where misleading names lead. */
export function attackedNetwork(origin: Origin, loopbackPort: number): AttackedNetwork {
  return {
    allow: [
      `echo.${DOMAIN}:${origin.port}`,
      ...(loopbackPort === origin.port ? [] : [`*.${DOMAIN}:${loopbackPort}`]),
      `ags-attack-bare:${loopbackPort}`,
      // Passed through unread: with TLS, and in clear.
      `tunnel.${DOMAIN}`,
      `http://tunnel.${DOMAIN}`,
      // Inspected: TLS ends at the gateway, which decides about each request.
      `inspected.${DOMAIN}/open/*`,
      `GET looked-into.${DOMAIN}:${origin.securePort}/open/*`,
      `GET secret.${DOMAIN}:${origin.port}/open/*`,
      `GET paths.${DOMAIN}:${origin.port}/open/*`,
      `partly.${DOMAIN}:${origin.port}`,
    ],
    deny: [
      `denied.${DOMAIN}`,
      `paths.${DOMAIN}:${origin.port}/open/closed*`,
      `paths.${DOMAIN}:${origin.port}/open/secret/*`,
      `partly.${DOMAIN}:${origin.port}/closed/*`,
    ],
    addresses: [`${origin.address}/32`],
    dns: [origin.nameServer],
    secrets: [
      secret('ags-attack', 'secret', origin, { env: 'AGS_ATTACK_TOKEN' }),
      secret('ags-attack-door', 'secret', origin, { env: 'AGS_ATTACK_KEY', endpoint: 'AGS_ATTACK_URL' }),
      secret('ags-attack-denied', 'denied', origin, { endpoint: 'AGS_ATTACK_DENIED_URL' }),
      secret('ags-attack-forged', 'forged', origin, { endpoint: 'AGS_ATTACK_FORGED_URL' }),
      secret('ags-attack-mistaken', 'mistaken', origin, { endpoint: 'AGS_ATTACK_MISTAKEN_URL' }),
    ],
    upstreams: [
      {
        kind: 'http',
        host: origin.address,
        port: origin.proxyPort,
        auth: { env: PROXY_VARIABLE },
        hosts: [`proxied.${DOMAIN}`, `proxied-lan.${DOMAIN}`],
        resolve: 'here',
        origin: 'ags doctor --attack',
      },
    ],
  };
}

function secret(
  name: string,
  host: string,
  { securePort }: Origin,
  inside: { readonly env?: string; readonly endpoint?: string },
): SecretRule {
  return {
    name,
    from: { env: SECRET_VARIABLE },
    host: `${host}.${DOMAIN}`,
    port: securePort,
    header: 'authorization',
    send: null,
    env: inside.env ?? null,
    endpoint: inside.endpoint ?? null,
    origin: 'ags doctor --attack',
  };
}
