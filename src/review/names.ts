// review/names.ts: refuses dangerous file names, and warns reviewers about unusual ones.
// Invariant: a name that any common file system could read as ".git", or as a path out of the project, is refused.
// Folding is deliberately coarser than any one file system: names that might collide on some system count as equal.
import { visible } from '../lib/sanitize.ts';

export function inspectName(path: string): { refuse: string | null; warnings: string[] } {
  const refuse = refusal(path);
  if (refuse !== null) return { refuse, warnings: [] };
  const names = path.split('/');
  const warnings = WARNINGS.filter((w) => names.some((name) => w.when(name))).map((w) => w.say);
  const plain = path.normalize('NFKC');
  if (plain !== path && /^[ -~]+$/.test(plain))
    warnings.push(`The name can be read as ${plain}, which is another file.`);
  return { refuse: null, warnings };
}

/** Groups of paths that collide on a file system that ignores case or normalises names. */
export function caseCollisions(paths: readonly string[]): string[][] {
  const spellings = new Map<string, Set<string>>();
  for (const path of paths) {
    for (const { folded, spelled } of prefixes(path)) {
      const known = spellings.get(folded);
      if (known) known.add(spelled);
      else spellings.set(folded, new Set([spelled]));
    }
  }
  const groups = new Map<string, string[]>();
  for (const path of new Set(paths)) {
    // The outermost clash decides: a link "A" and a file "a/b" clash at "a", where a write to "a/b" would follow the link.
    const clash = prefixes(path).find(({ folded }) => (spellings.get(folded)?.size ?? 0) > 1);
    if (!clash) continue;
    const group = groups.get(clash.folded);
    if (group) group.push(path);
    else groups.set(clash.folded, [path]);
  }
  return [...groups.values()];
}

/** The form of a path that the most lenient file system would compare. */
export function foldPath(path: string): string {
  return path
    .split(/[\\/]/)
    .filter((name) => name !== '' && name !== '.')
    .map(foldName)
    .join('/');
}

function foldName(name: string): string {
  // Printable ASCII without a colon, trailing dot or blank folds by case alone.
  if (/^[!-9;-~]*[!--/-9;-~]$/.test(name)) return name.toLowerCase();
  const folded = name
    .normalize('NFKC')
    .replace(/[\p{Cf}\p{Default_Ignorable_Code_Point}]/gu, '')
    // Upper case first, because some letters have several lower-case forms, such as the long s and the dotless i.
    .toUpperCase()
    .toLowerCase()
    .normalize('NFKC');
  // NTFS drops trailing dots and blanks, and "name:stream" opens name.
  const stem = folded.replace(/(?<=.):.*$/s, '').replace(/[. ]+$/, '');
  return stem === '' ? folded : stem;
}

function refusal(path: string): string | null {
  if (path === '') return 'The name is empty.';
  if (path.startsWith('/')) return 'The path is absolute.';
  if (path.includes('\0')) return 'The name contains a NUL byte.';
  if (/\p{Cs}/u.test(path)) return 'The name is not valid UTF-8.';
  if (Buffer.byteLength(path) > 4096) return 'The path is longer than 4096 bytes.';
  for (const name of path.split('/')) {
    if (name === '') return 'The path has an empty name in it.';
    if (Buffer.byteLength(name) > 255) return 'A name is longer than 255 bytes.';
    // Windows treats the backslash as a separator, so each side of it is judged too.
    for (const part of name.split('\\')) {
      if (part === '.' || part === '..') return `The path contains "${part}".`;
      if (/^(?:\.git|git~\d+)$/.test(foldName(part))) return `Some file systems read "${visible(part)}" as .git.`;
    }
  }
  return null;
}

function prefixes(path: string): { folded: string; spelled: string }[] {
  const found: { folded: string; spelled: string }[] = [];
  let folded = '';
  let spelled = '';
  for (const name of path.split('/')) {
    folded += `/${foldName(name)}`;
    spelled += `/${name}`;
    found.push({ folded, spelled });
  }
  return found;
}

const UNSEEN = /[\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/u;
const RESERVED = /^(?:con|prn|aux|nul|conin\$|conout\$|(?:com|lpt)[0-9\u00b9\u00b2\u00b3])(?=$|[ .:])/i;

const WARNINGS: readonly { when: (name: string) => boolean; say: string }[] = [
  { when: (name) => /\p{Cc}/u.test(name), say: 'The name contains control characters.' },
  { when: (name) => UNSEEN.test(name), say: 'The name contains invisible or text-reordering characters.' },
  {
    when: (name) => /[\p{Zs}\u2800]/u.test(name.replaceAll(' ', '')),
    say: 'The name contains a blank that is not a plain space.',
  },
  { when: (name) => name.startsWith('-'), say: 'The name begins with a dash, so a program may take it for an option.' },
  { when: (name) => name.startsWith(' '), say: 'The name begins with a space.' },
  { when: (name) => /[. ]$/.test(name), say: 'The name ends in a dot or a space, which Windows drops.' },
  { when: (name) => RESERVED.test(name), say: 'The name is reserved on Windows.' },
  { when: (name) => /[<>:"|?*\\]/.test(name), say: 'The name contains a character that Windows does not allow.' },
  {
    when: (name) => /^[^.]{1,6}~\d/.test(name),
    say: 'The name has the form of a Windows short name, which can stand for another file.',
  },
  { when: (name) => name.includes('\uFFFD'), say: 'The name contains U+FFFD: its bytes may not be UTF-8.' },
  {
    when: (name) => name.normalize('NFC') !== name,
    say: 'The name is not in composed Unicode form (NFC); other systems may store it differently.',
  },
  { when: mixesScripts, say: 'The name mixes Latin letters with Cyrillic or Greek ones that can look the same.' },
];

function mixesScripts(name: string): boolean {
  return /\p{Script=Latin}/u.test(name) && /[\p{Script=Cyrillic}\p{Script=Greek}]/u.test(name);
}
