// run/network/secrets.ts: what the sandbox of a run has in place of secrets, and the authority it trusts where the gateway ends TLS.
// Invariant: values are read when the gateway needs them, stay in this process and reach neither file, command line nor log.
import { isNarrow } from '../../protocol/network-rule.ts';
import type { NetworkPolicy, SecretRule } from '../../protocol/network.ts';
import type { Authority } from '../../gateway/intercept/certificate.ts';
import { NO_SECRETS } from './plan-network.ts';
import type { World } from '../host-context.ts';

export interface TaskSecrets {
  readonly rules: readonly SecretRule[];
  /** By the name of the secret. */
  readonly placeholders: ReadonlyMap<string, string>;
  readonly authority: Authority | null;
}

/** Requests are looked into only where a rule speaks of methods or paths, or a secret has to be put in. */
function needsAuthority(policy: NetworkPolicy, secrets: readonly SecretRule[]): boolean {
  if (policy.mode === 'off') return false;
  return secrets.some(({ endpoint }) => endpoint === null) || policy.rules.some(isNarrow);
}

export async function prepareSecrets(
  policy: NetworkPolicy,
  rules: readonly SecretRule[],
  now: () => Date,
): Promise<TaskSecrets> {
  if (policy.mode === 'off' || (rules.length === 0 && !needsAuthority(policy, rules))) return NO_SECRETS;
  const { randomBytes } = await import('node:crypto');
  const authority = needsAuthority(policy, rules)
    ? (await import('../../gateway/intercept/certificate.ts')).createAuthority({
        commonName: 'ags gateway of one sandbox',
        days: 30,
        now: now(),
      })
    : null;
  const placeholders = rules.map(({ name }): [string, string] => [
    name,
    `ags-placeholder-${name}-${randomBytes(12).toString('hex')}`,
  ]);
  return { rules, placeholders: new Map(placeholders), authority };
}

const INSIDE = { ca: '/run/ags/ca.pem', bundle: '/run/ags/ca-bundle.pem', java: '/run/ags/java.jks' } as const;
/** It protects nothing: certificates are no secret. Java asks for one all the same. */
const JAVA_PASSWORD = 'changeit';

export interface Trust {
  readonly files: readonly { readonly to: string; readonly content: string; readonly binary: boolean }[];
  readonly env: Readonly<Record<string, string>>;
  readonly java: readonly string[];
}

/** What programs inside need to believe the authority of their sandbox. */
export async function planTrust(authority: Authority | null, world: Pick<World, 'env'>): Promise<Trust> {
  if (authority === null) return { files: [], env: {}, java: [] };
  const { combinedBundle, javaTrustOptions, javaTrustStore, trustEnvironment } =
    await import('../../gateway/intercept/trust-store.ts');
  const { bundleInside, systemBundle } = await import('./system-bundle.ts');
  const store = bundleInside();
  const bundle = combinedBundle(systemBundle(world), authority.certificatePem);
  return {
    files: [
      { to: INSIDE.ca, content: authority.certificatePem, binary: false },
      { to: INSIDE.bundle, content: bundle, binary: false },
      // For programs that ask no variable, such as wget.
      ...(store === null ? [] : [{ to: store, content: bundle, binary: false }]),
      { to: INSIDE.java, content: javaTrustStore([bundle], JAVA_PASSWORD).toString('latin1'), binary: true },
    ],
    env: trustEnvironment(INSIDE),
    java: javaTrustOptions(INSIDE, JAVA_PASSWORD),
  };
}
