// web/src/review/file-facts.ts: what a diff does not show by itself, as sentences: modes, links, sizes, moves.
import type { ApiFile } from '../../../src/protocol/api/review.ts';
import { cleanLine } from '../text/clean.ts';
import { bytes } from '../text/format.ts';

const LINK = '120000';
const PROGRAM = '100755';

export const KINDS: Readonly<Record<ApiFile['kind'], { letter: string; word: string; colour: string }>> = {
  new: { letter: 'A', word: 'new', colour: 'text-ok' },
  modified: { letter: 'M', word: 'changed', colour: 'text-info' },
  deleted: { letter: 'D', word: 'deleted', colour: 'text-bad' },
  renamed: { letter: 'R', word: 'moved', colour: 'text-info' },
  mode: { letter: 'M', word: 'mode changed', colour: 'text-info' },
  symlink: { letter: 'L', word: 'symbolic link', colour: 'text-warn' },
  type: { letter: 'T', word: 'type changed', colour: 'text-warn' },
};

export function factsOf(file: ApiFile): string[] {
  const { mode, from, added, folded } = file;
  const facts: string[] = [];
  if (from !== null) facts.push(`Moved from ${cleanLine(from)}.`);
  if (mode.after === LINK)
    facts.push(
      mode.before !== null && mode.before !== LINK
        ? 'Was a file and becomes a symbolic link; the line shown is where it points to.'
        : 'A symbolic link; the line shown is where it points to.',
    );
  else if (mode.before === LINK && mode.after !== null) facts.push('Was a symbolic link and becomes a file.');
  else if (mode.after === PROGRAM && mode.before === null) facts.push('A new file that can be executed.');
  else if (mode.after === PROGRAM && mode.before !== PROGRAM) facts.push('Becomes executable.');
  else if (mode.before === PROGRAM && mode.after !== null && mode.after !== PROGRAM)
    facts.push('Can no longer be executed.');
  if (added === null) facts.push(`Not text: ${bytes(file.bytes)}${mode.after === null ? ', deleted' : ''}.`);
  else if (file.bytes === 0 && mode.after !== null && mode.before === null) facts.push('An empty file.');
  if (folded === 'lock file') facts.push('A lock file: written by a program, so it is shown folded.');
  if (folded === 'generated') facts.push('Looks generated, so it is shown folded.');
  return facts;
}
