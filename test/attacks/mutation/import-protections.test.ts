// test/attacks/mutation/import-protections.test.ts: the table of import mutants is complete: every refusal and every bound in the source is
// in import-mutants.ts, or is listed here with the test that proves it.
import { expect, test } from 'vitest';
import { IMPORT_MUTANTS } from './import-mutants.ts';
import { goneNames, missingProofs, placesIn, staleIn, unknownIn, type Watched } from './protections.ts';

/** Lines by how they begin, with the reason. */
const NOT_HERE: Watched['notHere'] = {
  'lib/archive.ts': {
    'const MAX_BYTES': 'what is written: no header can say more',
    'return isEnd ? found': 'the words of what isEnd finds',
  },
  'lib/tree-archive.ts': {
    "if (headerText(block, 156, 157) === '2')": 'words: the header would be refused as another one',
    'throw new TreeProblem(`it contains an invalid name': 'the words of those above',
  },
  'protocol/carried-event.ts': {
    "kind: z.literal('write')": 'tells actions apart',
    "z.object({ kind: z.literal('": 'tells actions apart',
  },
  'transfer/import.ts': {
    "throw new AgsError('disk.full'": 'words; test/transfer/cut-off.full.test.ts',
    'if (dropped > 10_000)': 'taken out where it is asked for',
    'throw refusedFile(error.message': 'the words of those in git/',
  },
  'transfer/import-place.ts': {
    "throw new AgsError('project.unsuitable', `${visible(directory)} is not a git": 'there is nowhere to go',
    'return new AgsError(': 'the words of those above',
    "throw new AgsError('path.not-found'": 'there is nowhere to go',
  },
  'transfer/import-read.ts': {
    "return new AgsError('import.refused'": 'words',
    "if ('problem' in members)": 'the words of those in lib/archive.ts',
    "throw new AgsError('path.not-found'": 'there is nothing to read',
    "throw new AgsError('import.refused', `${visible(file)}": 'the words of the line that asks',
    "if (member === undefined) throw refusedFile('it says nowhere": 'there is nothing to read',
    'throw new AgsError(': 'words: the schema refuses other formats',
    'throw refusedFile(`what it says about itself is wrong': 'the words of what the schema finds',
    'for (const name of [MEMBERS.events': 'refused again when it is read',
    "throw refusedFile('the data of its services": 'the words of the conditions above',
    'if (member === undefined) throw refusedFile(`${name} is missing`)': 'there is nothing to read',
  },
  'transfer/carried-rules.ts': {
    'if (error instanceof AgsError) throw refusedFile': 'words: the configuration refuses it by itself',
  },
  'git/staging/new-repository.ts': {
    "? new AgsError('disk.full'": 'words',
    ": new AgsError('import.refused'": 'what git itself refuses to write',
  },
};

const WATCHED: Watched = {
  files: [
    'lib/archive.ts',
    'lib/tree-archive.ts',
    'protocol/export.ts',
    'protocol/carried-event.ts',
    'transfer/import.ts',
    'transfer/import-data.ts',
    'transfer/import-journal.ts',
    'transfer/import-place.ts',
    'transfer/import-read.ts',
    'transfer/imported-task.ts',
    'transfer/carried-rules.ts',
    'transfer/portable-text.ts',
    'git/staging/new-repository.ts',
  ],
  pieces: IMPORT_MUTANTS.flatMap(({ pieces }) => pieces),
  like: [
    /\b(?:throw refusedFile|new AgsError|new TreeProblem|throw needsHistory)\(/,
    /\bproblem: ['`]/,
    /(?<!Math)\.(?:max|min|regex|refine)\(|strictObject|z\.(?:iso|enum|literal)\b/,
    /^(?:export )?const (?:MAX|MOST)_\w+ = /,
  ],
  names: ['refusedFile', 'AgsError', 'TreeProblem', 'needsHistory', 'problem'],
  notHere: NOT_HERE,
};

test('every refusal and every bound in the source of imports is removed by a mutant or listed', () => {
  expect(placesIn(WATCHED).filter(({ removed }) => removed).length).toBeGreaterThan(60);
  expect(unknownIn(WATCHED)).toEqual([]);
  expect(goneNames(WATCHED)).toEqual([]);
});

test('every listed line exists, and so does the test that proves it', () => {
  expect(missingProofs(Object.values(NOT_HERE).flatMap((one) => Object.values(one)))).toEqual([]);
  expect(staleIn(WATCHED)).toEqual([]);
});
