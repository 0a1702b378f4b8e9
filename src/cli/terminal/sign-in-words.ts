// cli/terminal/sign-in-words.ts: how an agent is signed in, in a few words. It shows at most the last four characters of a key.
import type { SignInStatus } from '../../agent-setup/credentials.ts';

const KINDS = { 'api-key': 'API key', token: 'token', login: 'log-in' } as const;

export function signInWords({ provider, kind, ending, where, variable, problem }: SignInStatus): string {
  if (where === 'not needed') return provider === null ? 'not needed' : 'without a key';
  if (kind === null) return problem === null ? 'no' : `no: ${problem}`;
  const what = KINDS[kind];
  if (problem !== null) return `${what}: ${problem}`;
  if (where === 'configuration') return `${what} as configured`;
  if (where === 'environment') return `${what} in ${variable}`;
  return `${what} ...${ending}${where === 'keychain' ? ' in the keychain' : ''}`;
}
