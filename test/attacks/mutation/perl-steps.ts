// test/attacks/mutation/perl-steps.ts: steps of the Perl programs that start a sandbox, each with its replacement.
import { replaceIn } from '../../../scripts/anchors.mjs';

type Step = readonly [from: string, to: string];

// One row for each step, as a table.
// oxfmt-ignore
/** The launcher of the native sandbox. */
export const LAUNCHER_STEPS = {
  'a layer is the directory that was looked at': ["if (join(',', (stat $lower)[0, 1]) ne $identity)", 'if (0)'],
  'no file of the host is a stream': ['for my $fd (7, 0, 1, 2) {', 'for my $fd (grep { 0 } 7) {'],
  'a part of the watches on files': ['open(my $own, \'>\', "/proc/sys/user/max_inotify_$_") or next;', 'next;'],
  'no group of root': ['$) = "$gid $gid"; $( = $gid; $< = $uid; $> = $uid;\n  fail(…) if $< != $uid || $> != $uid || $( + 0 != $gid || $) ne "$gid $gid";', 'syscall($setgid, ($gid + 0) x 3); $< = $uid; $> = $uid;'],
  'no mount comes back': ["mount('', '/', '', 0x44000, '') or fail(…);", ''],
  'the first to go when memory is short': ["syswrite $f, '800';", ''],
} as const satisfies Record<string, Step>;

/** The gate of a container. */
export const GATE_STEPS = {
  'take the filter': ['syscall($prctl, 22, 2, $program, 0, 0) == 0 or refuse(…);', ''],
  'give privileges up': ['syscall($prctl, 38, 1, 0, 0, 0) == 0 or refuse(…);', ''],
  'close this process': ['syscall($prctl, 4, 0, 0, 0, 0) == 0 or refuse(…);', ''],
  'set the variables': ['%ENV = map { split /=/, $_, 2 } split /\\0/, $env;', ''],
} as const satisfies Record<string, Step>;

export function changedProgram(program: string, [from, to]: Step): string {
  return replaceIn(program, from, to, '.pl');
}
