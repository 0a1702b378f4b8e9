// sandbox/io/inside-host.ts: the program that starts a run's commands inside its sandbox, and lets others join (perl/inside-host.pl).
import { perlProgram } from '../../lib/perl.ts';

export const JOIN_PORT = 3131;
export const INSIDE_HOST = '/run/ags/host';

export function insideHostArgv(command: readonly string[], perl: readonly string[]): string[] {
  return [...perl, INSIDE_HOST, String(JOIN_PORT), ...command];
}

export function insideHostScript(): string {
  return perlProgram('sandbox/perl/inside-host.pl');
}
