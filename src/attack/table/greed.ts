// attack/table/greed.ts: judges a program that tried to exceed a limit.
// Invariant: "limited" requires that this very limit was observed to hold. A program that ended for another reason, or met another error,
// has proved nothing and counts as not stopped.
import type { GreedAttack } from './attack.ts';

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
