// web/src/review/file-facts.ts: sentences about changes that diff lines do not show: modes, links, sizes and moves.
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
        ? 'Changes from a file to a symbolic link. The line below is its target.'
        : 'A symbolic link. The line below is its target.',
    );
  else if (mode.before === LINK && mode.after !== null) facts.push('Changes from a symbolic link to a file.');
  else if (mode.after === PROGRAM && mode.before === null) facts.push('A new executable file.');
  else if (mode.after === PROGRAM && mode.before !== PROGRAM) facts.push('Becomes executable.');
  else if (mode.before === PROGRAM && mode.after !== null && mode.after !== PROGRAM)
    facts.push('No longer executable.');
  if (added === null) facts.push(`Binary file: ${bytes(file.bytes)}${mode.after === null ? ', deleted' : ''}.`);
  else if (file.bytes === 0 && mode.after !== null && mode.before === null) facts.push('An empty file.');
  if (folded === 'lock file') facts.push('A lock file, collapsed by default.');
  if (folded === 'generated') facts.push('Looks generated, collapsed by default.');
  return facts;
}
