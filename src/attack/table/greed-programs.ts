// attack/table/greed-programs.ts: programs that exceed their limits, each in a sandbox with small limits, so that a missing limit shows
// without harming the machine. See attack.ts.
// Invariant: "limited" requires that this very limit was observed to hold. A program that ended for another reason, or met another error,
// has proved nothing and counts as not stopped.
import type { GreedAttack } from './attack.ts';

const perl = String.raw;
/** The time limit is longer than a slow machine needs: only one of the programs is about time. */
const SMALL = {
  time: '60s',
  processes: '100',
  memory: '256m',
  disk: '50m',
  tmp: '16m',
  fileSize: '8m',
  openFiles: '256',
};

export const GREED_ATTACKS: readonly GreedAttack[] = [
  {
    id: 'res-fork-bomb',
    area: 'resources',
    references: ['A145'],
    what: 'make processes without end (300, where 100 are granted)',
    best: 'limited',
    limits: SMALL,
    perl: perl`my $n = 0; while (defined(my $pid = fork)) { if (!$pid) { sleep 60; exit } last if ++$n > 300 } if ($n >= 100) { print "got it\n" } else { refused() } kill 9, -1`,
    heldBy: { refused: ['EAGAIN'] },
  },
  {
    id: 'res-memory',
    area: 'resources',
    references: ['A146'],
    what: 'take more memory than was granted (600 MiB of 256)',
    best: 'limited',
    limits: SMALL,
    perl: perl`my $n = 600; my $x = 'a' x ($n << 20); sleep 3; print "got it\n"`,
    heldBy: { ended: ['limits.memory'], killed: true, lastWords: 'Out of memory' },
  },
  {
    id: 'res-memory-files',
    area: 'resources',
    references: ['A146', 'A147'],
    what: 'take more room in memory than /tmp was granted (80 MiB of 16), and some of /dev/shm beside it',
    best: 'limited',
    limits: SMALL,
    perl: perl`my $done = 0; for my $dir ('/tmp', '/dev/shm') { for my $i (1 .. 20) { open(my $f, '>', "$dir/fill$i") or do { refused(); last }; my $n = syswrite $f, 'a' x (4 << 20); $done += $n // 0; next if ($n // 0) == 4 << 20; $n = syswrite $f, 'a' x 65536; if (!defined $n) { refused(); last } $done += $n } } print "got it\n" if $done > 120 << 20`,
    // Files in memory file systems count as memory too.
    heldBy: { refused: ['ENOSPC', 'ENOMEM'], ended: ['limits.memory'], killed: true },
  },
  {
    id: 'res-disk',
    area: 'resources',
    references: ['A147'],
    what: 'fill the disk through the workspace, the home and the git directory (360 MiB of 50)',
    best: 'limited',
    limits: SMALL,
    perl: perl`for my $i (1 .. 60) { for my $dir ('.', $ENV{HOME}, '.git') { open my $f, '>', "$dir/fill$i" or next; syswrite $f, 'a' x (2 << 20); close $f } select undef, undef, undef, 0.1 } sleep 4; print "got it\n"`,
    heldBy: { ended: ['limits.disk'] },
  },
  {
    id: 'res-file-size',
    area: 'resources',
    references: ['A147', 'A114'],
    what: 'make one file of a terabyte, or go on writing beyond the size that one file may have',
    best: 'limited',
    limits: SMALL,
    perl: perl`$SIG{XFSZ} = 'IGNORE'; open(my $f, '>', 'huge') or die "huge: $!"; if (truncate $f, 1 << 40) { print "got it\n" } else { refused() } defined sysseek $f, 16 << 20, 0 or die "seek: $!"; if (defined syswrite $f, 'x') { print "got it\n" } else { refused() } unlink 'huge'`,
    heldBy: { refused: ['EFBIG'] },
  },
  {
    id: 'res-open-files',
    area: 'resources',
    references: ['A151'],
    what: 'open files without end in one process (600, where 256 are granted)',
    best: 'limited',
    limits: SMALL,
    perl: perl`my @all; for (1 .. 600) { open(my $f, '<', '/dev/null') or do { refused(); last }; push @all, $f } print "got it\n" if @all > 256`,
    heldBy: { refused: ['EMFILE'] },
  },
  {
    id: 'res-time',
    area: 'resources',
    references: ['A149', 'A23'],
    what: 'run on when its time is over, deaf to signals and in a session of its own',
    best: 'limited',
    limits: { ...SMALL, time: '2s' },
    perl: perl`use POSIX (); for my $name (qw(TERM INT HUP QUIT ALRM XCPU)) { $SIG{$name} = 'IGNORE' } if (!fork) { POSIX::setsid(); fork and exit; sleep 12; exit } sleep 12; print "got it\n"`,
    heldBy: { ended: ['limits.time'] },
  },
];

export interface GreedRun {
  readonly said: string;
  /** Why the sandbox was ended early, as a sentence. */
  readonly ended: string | null;
  readonly exitCode: number;
  /** It ran on a remote machine. */
  readonly far?: boolean;
}

/** The failure, or how the limit held. */
export type GreedVerdict = { readonly wrong: string } | { readonly held: string };

export function judgeGreed({ heldBy }: GreedAttack, { said, ended, exitCode, far }: GreedRun): GreedVerdict {
  const lines = said.split('\n');
  if (lines.includes('got it')) return { wrong: 'it got more than it was given' };
  if (ended !== null)
    return heldBy.ended?.some((words) => ended.includes(words)) === true
      ? { held: ended }
      : { wrong: `its limit was not seen to hold: ${ended}` };
  if (!lines.includes(ENDED)) {
    if (far === true && heldBy.killed === true && exitCode === KILLED)
      return { held: `ended by the kernel (${exitCode})` };
    if (heldBy.lastWords !== undefined && said.includes(heldBy.lastWords)) return { held: heldBy.lastWords };
    return { wrong: `its limit was not seen to hold: it ended with ${exitCode}, ${lastWords(lines)}` };
  }
  const met = lines.filter((line) => line.startsWith(REFUSED)).map((line) => line.slice(REFUSED.length));
  const other = met.find((error) => heldBy.refused?.includes(error) !== true);
  if (met.length === 0) return { wrong: 'its limit was not seen to hold: it was neither refused nor ended' };
  return other === undefined
    ? { held: `refused at the limit (${[...new Set(met)].join(', ')})` }
    : { wrong: `its limit was not seen to hold: it met ${other}` };
}

const KILLED = 137;
const BEGAN = 'began';
const ENDED = 'ended';
const REFUSED = 'refused ';

/** For perl -e. It prints that it began: a program that cannot start must not count as stopped. */
export function greedProgram({ perl }: GreedAttack): string {
  return `use Errno; sub refused { my $n = $! + 0; my ($name) = grep { $!{$_} } qw(EAGAIN ENOMEM ENOSPC EFBIG EMFILE EDQUOT); print "${REFUSED}", $name // "error $n", "\\n" } $| = 1; print "${BEGAN}\\n"; ${perl}; print "${ENDED}\\n"`;
}

export function hasBegun({ said }: GreedRun): boolean {
  return said.split('\n').includes(BEGAN);
}

function lastWords(lines: readonly string[]): string {
  const last = lines.findLast((line) => line !== '' && line !== BEGAN);
  return last === undefined ? 'in silence' : `saying ${last}`;
}
