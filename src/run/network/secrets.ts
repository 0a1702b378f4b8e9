// run/network/secrets.ts: the placeholders that a sandbox has in place of secrets, and the authority it trusts where the
// gateway ends TLS.
// Invariant: values are read when the gateway needs them, and stay in this process: in no file, command line or log.
import { isNarrow } from '../../protocol/network-rule.ts';
import type { NetworkPolicy, SecretRule } from '../../protocol/network.ts';
import type { Authority } from '../../gateway/intercept/certificate.ts';
import type { HostContext } from '../host-context.ts';

export interface TaskSecrets {
  readonly rules: readonly SecretRule[];
  /** Keyed by the name of the secret. */
  readonly placeholders: ReadonlyMap<string, string>;
  readonly authority: Authority | null;
}

export const NO_SECRETS: TaskSecrets = { rules: [], placeholders: new Map(), authority: null };

/** The gateway reads requests only where a rule names methods or paths, or a secret has to be inserted. */
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
/** Certificates are not secret, so it protects nothing; Java requires one. */
const JAVA_PASSWORD = 'changeit';

export interface Trust {
  readonly files: readonly { readonly to: string; readonly content: string; readonly binary: boolean }[];
  readonly env: Readonly<Record<string, string>>;
  readonly java: readonly string[];
}

/** Files, variables and Java options that make programs inside trust the sandbox's authority. */
export async function planTrust(authority: Authority | null, context: Pick<HostContext, 'env'>): Promise<Trust> {
  if (authority === null) return { files: [], env: {}, java: [] };
  const { combinedBundle, javaTrustOptions, javaTrustStore, trustEnvironment } =
    await import('../../gateway/intercept/trust-store.ts');
  const { bundleInside, systemBundle } = await import('./system-bundle.ts');
  const store = bundleInside();
  const bundle = combinedBundle(systemBundle(context), authority.certificatePem);
  return {
    files: [
      { to: INSIDE.ca, content: authority.certificatePem, binary: false },
      { to: INSIDE.bundle, content: bundle, binary: false },
      // For programs that read no variable, such as wget.
      ...(store === null ? [] : [{ to: store, content: bundle, binary: false }]),
      { to: INSIDE.java, content: javaTrustStore([bundle], JAVA_PASSWORD).toString('latin1'), binary: true },
    ],
    env: trustEnvironment(INSIDE),
    java: javaTrustOptions(INSIDE, JAVA_PASSWORD),
  };
}
