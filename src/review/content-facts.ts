// review/content-facts.ts: finds facts about any changed file by its content: links, programs, hidden text, secrets,
// weakened tests.
// Invariant: a found secret is named by its kind and line, never repeated. Unreadable content is never called harmless.
// Every expression here takes linear time, because an agent chooses the text.
import { invisibleIn, visible } from '../lib/sanitize.ts';
import { SECRET_FORMATS } from '../lib/secret-formats.ts';
import { type AddedLine, addedLines } from './added-lines.ts';
import type { ClassifyInput, Content, Fact } from './fact.ts';
import { MEDIA_FILES, TEST_FILES } from './lane-rules.ts';
import { linkFacts } from './link-facts.ts';
import { foldPath } from './names.ts';
import { compileRules } from './path-pattern.ts';

export function contentFacts({ path, from, before, after }: ClassifyInput): Fact[] {
  const test = [path, from ?? path].some((name) => testRule(foldPath(name)).length > 0);
  if (after === null) return test && before !== null ? [look('Deletes a file with tests.')] : [];
  if (after.mode === '120000') return linkFacts(path, before, after);
  const facts = [...modeFacts(before, after), ...programFacts(path, after)];
  if (before?.mode === '120000') facts.push(look(`Was a symbolic link to ${visible(before.text ?? '?')} before.`));
  if (after.text === null) return facts;
  const earlier = before === null || before.mode === '120000' ? null : before.text;
  const added = addedLines(earlier, after.text);
  facts.push(...hiddenTextFacts(added), ...secretFacts(added));
  if (test) facts.push(...testFacts(earlier, after.text, added));
  if (after.text.startsWith('version https://git-lfs.github.com/spec/')) {
    facts.push(look('A Git LFS pointer: the content itself lies elsewhere and is not shown.'));
  }
  return facts;
}

function modeFacts(before: Content | null, after: Content): Fact[] {
  if (after.mode === '100755' && before?.mode !== '100755') return [host('Becomes executable.')];
  if (after.mode === '100644' && before?.mode === '100755') return [look('Is no longer executable.')];
  return [];
}

function programFacts(path: string, after: Content): Fact[] {
  const name = path.slice(path.lastIndexOf('/') + 1);
  if (after.text !== null) {
    const program = /^\uFEFF?#!(?!\[)[ \t]*([^\n]{0,200})/.exec(after.text)?.[1];
    // A file with an extension and without the executable bit is not run by its first line.
    if (program === undefined || (after.mode !== '100755' && /[^.]\.[^.]+$/.test(name))) return [];
    return [host(`A script run by ${visible(program.trim())}.`)];
  }
  const size = `${after.bytes} bytes`;
  const kind = MAGIC.find(
    ({ bytes }) => after.head !== undefined && bytes.every((byte, at) => after.head?.[at] === byte),
  );
  if (kind) return [host(`${kind.is}, ${size}.`)];
  const unread = `Binary or too large to show, ${size}; its content was not checked.`;
  return [after.head !== undefined || mediaRule(foldPath(path)).length > 0 ? look(unread) : host(unread)];
}

function hiddenTextFacts(added: readonly AddedLine[]): Fact[] {
  const facts: Fact[] = [];
  const unseen = invisibleIn(joined(added));
  if (unseen.length > 0) facts.push(look(`Adds control, invisible or text-reordering characters: ${list(unseen)}.`));
  const long = added.find((line) => line.text.length > 2000);
  if (long) facts.push(look(`Line ${long.number} has ${long.text.length} characters.`));
  const pushed = added.find((line) => /(?<![ \t])[ \t]{120,}[^ \t\r]/.test(line.text));
  if (pushed) facts.push(look(`Line ${pushed.number} has text far to the right, after a long run of blanks.`));
  return facts;
}

function secretFacts(added: readonly AddedLine[]): Fact[] {
  const text = joined(added);
  return SECRET_FORMATS.filter(({ like }) => like.test(text)).flatMap(({ certain, is, like }) => {
    const line = added.find((candidate) => like.test(candidate.text));
    return line ? [{ level: certain ? 'ci' : 'look', say: `Line ${line.number} looks like ${is}.` }] : [];
  });
}

function testFacts(before: string | null, after: string, added: readonly AddedLine[]): Fact[] {
  const skipped = added.find((line) => SKIPS.test(line.text));
  const facts = skipped
    ? [look(`Line ${skipped.number} skips tests: ${visible(skipped.text.trim().slice(0, 100))}`)]
    : [];
  for (const { expression, noun } of COUNTED) {
    const fewer = count(before ?? '', expression) - count(after, expression);
    if (fewer > 0) facts.push(look(`Has ${fewer} fewer ${noun} than before.`));
  }
  return facts;
}

// Each line keeps its end, because the character after a carriage return decides how it is judged.
function joined(added: readonly AddedLine[]): string {
  return added.map((line) => `${line.text}\n`).join('');
}

function count(text: string, expression: RegExp): number {
  return text.match(expression)?.length ?? 0;
}

function list(items: readonly string[]): string {
  return items.length > 8 ? `${items.slice(0, 8).join(', ')} and ${items.length - 8} more` : items.join(', ');
}

function host(say: string): Fact {
  return { level: 'host', say };
}

function look(say: string): Fact {
  return { level: 'look', say };
}

const testRule = compileRules([{ match: TEST_FILES }]);
const mediaRule = compileRules([{ match: MEDIA_FILES }]);

const SKIPS =
  /\b(?:it|test|describe|suite|context)\.(?:skip|only|todo|fixme)\b|\b(?:xit|xtest|xdescribe|fit|fdescribe)\s?\(|@(?:pytest\.mark|unittest)\.(?:skip|xfail|expectedFailure)|\bpytest\.skip\(|\bt\.Skip(?:f|Now)?\(|#\[ignore\b|@(?:Disabled|Ignore)\b|\[(?:Ignore|Skip)\b|\bSkip\s?=\s?"|\.markTestSkipped\(/;
const COUNTED: readonly { expression: RegExp; noun: string }[] = [
  {
    expression:
      /\b(?:it|test)(?:\.\w{1,20})?\s?\(|\bdef test_|\bfunc Test[A-Z]|#\[test\]|@Test\b|\[(?:Fact|Theory|Test)\]/g,
    noun: 'tests',
  },
  {
    expression: /\b(?:expect|assert\w{0,30}!?)\s?\(|^[ \t]*assert\s|\brequire\.\w{1,30}\(|\bt\.(?:Error|Fatal)f?\(/gm,
    noun: 'assertions',
  },
];

const MAGIC: readonly { bytes: readonly number[]; is: string }[] = [
  { bytes: [0x7f, 0x45, 0x4c, 0x46], is: 'An ELF program or library' },
  { bytes: [0x4d, 0x5a], is: 'A Windows program or library' },
  { bytes: [0xfe, 0xed, 0xfa, 0xce], is: 'A macOS program or library' },
  { bytes: [0xfe, 0xed, 0xfa, 0xcf], is: 'A macOS program or library' },
  { bytes: [0xce, 0xfa, 0xed, 0xfe], is: 'A macOS program or library' },
  { bytes: [0xcf, 0xfa, 0xed, 0xfe], is: 'A macOS program or library' },
  { bytes: [0xca, 0xfe, 0xba, 0xbe], is: 'A Java class or a macOS program' },
  { bytes: [0x00, 0x61, 0x73, 0x6d], is: 'A WebAssembly module' },
  { bytes: [0x64, 0x65, 0x78, 0x0a], is: 'An Android program' },
  { bytes: [0x42, 0x43, 0xc0, 0xde], is: 'LLVM bitcode' },
  { bytes: [0x21, 0x3c, 0x61, 0x72, 0x63, 0x68, 0x3e], is: 'A library of compiled code' },
  { bytes: [0x23, 0x21], is: 'A large or binary script with an interpreter line' },
];
