// hooks/client.ts: the program that an agent's own hooks run inside: it asks the listener and exits with the answer (client.pl).
import { perlProgram } from '../lib/perl.ts';
import { PLAIN_YES } from './listener.ts';

export const CLIENT_PATH = '/run/ags/hook';

/** -T: Perl reads no options or libraries from the environment. */
export function clientCommand(perl: readonly string[]): readonly string[] {
  return [...perl, '-T', CLIENT_PATH];
}

export function hookClient(port: number, seconds: number): string {
  return perlProgram('hooks/client.pl', { PORT: port, SECONDS: seconds, YES: PLAIN_YES });
}
