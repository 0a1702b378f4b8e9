// test/lib/terminal-queries.test.ts: questions of programs to their terminal are found, and nothing else.
import { expect, test } from 'vitest';
import { createScreenFilter } from '../../src/lib/screen-filter.ts';
import { withoutQueries } from '../../src/lib/terminal-queries.ts';

const through = (text: string): string => withoutQueries(createScreenFilter()(Buffer.from(text))).toString();

test.each(
  [
    '\x1b[c \x1b[0c \x1b[>c \x1b[>0c \x1b[=c \x1bZ \x05 \x9bc',
    '\x1b[5n \x1b[6n \x1b[?6n \x1b[?15n \x1b[?996n',
    '\x1b[>q \x1b[>0q \x1b[x \x1b[1x',
    '\x1b[4$p \x1b[?2026$p \x1b[?u \x1b[?4m \x1b[?1;1;0S',
    '\x1b[1$w \x1b[1$u \x1b[&u \x1b[1;1;1;1;1;1*y \x1b[14t \x1b[18t \x1b[21t',
    '\x1b]10;?\x1b\\ \x1b]11;?\x07 \x1b]4;1;?\x1b\\ \x9d11;?\x07',
    // Terminals do not see these at all.
    '\x1b]52;c;?\x07 \x1bP$qm\x1b\\ \x1bP+q544e\x1b\\ \x1b_Gi=1,a=q;AA\x1b\\',
  ].flatMap((line) => line.split(' ')),
)('%j is a question', (query) => expect(through(`a${query}b`)).toBe('ab'));

test.each(
  '\x1b[31m|\x1b[4:3m|\x1b[>4;2m|\x1b[>4n|\x1b[2J|\x1b[S|\x1b[3;9r|\x1b[?2026h|\x1b[>1u|\x1b[<u|\x1b[2 q|\x1b[1;1H|\x1b7|\x1b[!p|\x1b]2;why?\x1b\\'.split(
    '|',
  ),
)('%j is none', (draws) => expect(through(`a${draws}b`)).toBe(`a${draws}b`));
