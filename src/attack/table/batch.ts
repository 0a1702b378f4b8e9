// attack/table/batch.ts: many attempts in one sandbox: a Perl program runs each in its own process and prints its answer. Starting a sandbox
// costs more than a hundred attempts.
// Invariants: an attempt that dies, hangs or ends its process is an answer too, and never stops the others. An answer counts only if the
// attempt ran to its end, here and wherever else it ran a program: one that was cut off was not refused everything it tried.
import { perlProgram } from '../../lib/perl.ts';
import { NUMBERS } from '../../sandbox/spec/seccomp-table.ts';
import type { Attack, Places } from './attack.ts';

const MARK = 'attempt';

export function batchProgram(arch: string): string {
  const numbers = Object.entries({ ...NUMBERS, ...MORE_NUMBERS }).map(
    ([name, [x64, arm64]]) => `${name} ${(arch === 'arm64' ? arm64 : x64) ?? -1}`,
  );
  const given = { NUMBERS: numbers.join(' '), HELPERS: perlProgram('attack/perl/helpers.pl') };
  return perlProgram('attack/perl/batch.pl', given);
}

/** The standard input of the program. */
export function batchInput(attacks: readonly Attack[], places: Places): string {
  const given = Object.entries(places).map(([name, value]) => `${name}=${value}`);
  return [String(given.length), ...given, ...attacks.map((attack) => attack.perl)].join('\0');
}

/** One answer per attempt, in order; '' where there is none. */
export function parseAnswers(stdout: string, attacks: readonly Attack[]): string[] {
  const found = new Map(
    stdout
      .split('\n')
      .filter((line) => line.startsWith(`${MARK}\t`))
      .map((line) => {
        const [, index = '', hex = ''] = line.split('\t');
        return [Number(index), Buffer.from(hex, 'hex').toString('utf8').trim()];
      }),
  );
  return attacks.map((_, i) => found.get(i) ?? '');
}

/** [x64, arm64] */
const MORE_NUMBERS = {
  mq_open: [240, 180],
  pidfd_open: [434, 434],
  setxattr: [188, 5],
  sethostname: [170, 161],
  capset: [126, 91],
  setresuid: [117, 147],
  prctl: [157, 167],
  inotify_init1: [294, 26],
  kill: [62, 129],
  splice: [275, 76],
  sched_setscheduler: [144, 119],
  ioprio_set: [251, 30],
  memfd_create: [319, 279],
  name_to_handle_at: [303, 264],
  seccomp: [317, 277],
  landlock_create_ruleset: [444, 444],
  openat2: [437, 437],
  setpriority: [141, 140],
  adjtimex: [159, 171],
  settimeofday: [164, 170],
  lookup_dcookie: [212, 18],
  vhangup: [153, 58],
} as const;
