// tasks/secrets.ts: what the sandbox of a run has in place of secrets, and the authority it trusts where the gateway ends TLS.
// Invariant: values are read when the gateway needs them, stay in this process and reach neither file, command line nor log.
import type { NetworkPolicy, SecretRule } from '../protocol/network.ts';
import type { Authority } from '../gateway/certificate.ts';

export interface TaskSecrets {
  readonly rules: readonly SecretRule[];
  /** By the name of the secret. */
  readonly placeholders: ReadonlyMap<string, string>;
  readonly authority: Authority | null;
}

export const NO_SECRETS: TaskSecrets = { rules: [], placeholders: new Map(), authority: null };

/** Requests are looked into only where a rule speaks of methods or paths, or a secret has to be put in. */
export function needsAuthority(policy: NetworkPolicy, secrets: readonly SecretRule[]): boolean {
  if (policy.mode === 'off') return false;
  return (
    secrets.some(({ endpoint }) => endpoint === null) ||
    policy.rules.some(({ methods, path }) => methods !== null || path !== null)
  );
}

export async function prepareSecrets(
  policy: NetworkPolicy,
  rules: readonly SecretRule[],
  now: () => Date,
): Promise<TaskSecrets> {
  if (policy.mode === 'off' || (rules.length === 0 && !needsAuthority(policy, rules))) return NO_SECRETS;
  const { randomBytes } = await import('node:crypto');
  const authority = needsAuthority(policy, rules)
    ? (await import('../gateway/certificate.ts')).createAuthority({
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
