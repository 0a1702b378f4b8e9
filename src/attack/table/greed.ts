// attack/table/greed.ts: what became of a program that wanted more than it was given.
// Invariant: it was limited only if the very limit that it tried was seen to hold. One that was ended for another reason, or that met another
// error, has shown nothing, and counts as not stopped.
import type { GreedAttack } from './attack.ts';

export interface GreedRun {
  readonly said: string;
  /** Why the sandbox was ended early, in words. */
  readonly ended: string | null;
  readonly exitCode: number;
  /** It ran on another machine. */
  readonly far?: boolean;
}

/** What went wrong, or how it was held. */
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

/** For perl -e. It says that it began: one that cannot be started at all must not be taken for one that was stopped. */
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
