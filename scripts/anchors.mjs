// scripts/anchors.mjs: finds a fragment of source code after files moved and identifiers changed, and replaces it. The tables of mutations name
// protections by such fragments. Invariant: a fragment identifies one place, or finding it fails.
// - A file is named by the end of its path. If it was renamed or lacks the fragment, all files are searched.
// - Without an exact match, tokens are compared: white space and comments do not count, and one identifier may consistently stand for
//   another. The replacement then uses the current identifiers.
// - "…" in a fragment matches anything up to the next token, such as the words of an error: throw new AgsError(…);
//   In the replacement it stands for the same text. A fragment that ends inside a literal matches the literal's beginning.
import * as fs from 'node:fs';
import { basename, join } from 'node:path';

/** The source below `root`. A piece is [file, from, to]; returned paths are relative to `root`. */
export function openSource(root) {
  const files = listFiles(root, ['src', 'web/src'], /\.(?:tsx?|pl)$/);
  const texts = new Map();
  let names;
  const read = (path) => {
    if (!texts.has(path)) texts.set(path, fs.readFileSync(join(root, path), 'utf8'));
    return texts.get(path);
  };
  const named = (name) => endingWith(files, name) ?? endingWith(files, basename(name));

  function locate(name, from, textOf = read) {
    const here = named(name);
    // A short fragment is too ambiguous to search for elsewhere.
    const everywhere = here === null || tokensOf(from, here).length >= 8 ? files : [];
    const look = (places, search) =>
      places.flatMap((path) => search(textOf(path), from, path).map((at) => ({ path, ...at })));
    const searches = [
      ...(here === null ? [] : [() => look([here], findText), () => cheapest(look([here], findTokens))]),
      () => look(everywhere, findText),
      () => cheapest(look(everywhere, findTokens)),
    ];
    for (const search of searches) {
      const found = search();
      if (found.length > 0) return found;
    }
    return [];
  }

  /** The place of the fragment; fails unless there is exactly one. */
  function find(name, from, textOf = read) {
    const [found, ...more] = locate(name, from, textOf);
    if (found === undefined) throw new Error(`${name} does not have: ${from}${nearest(named(name), textOf, from)}`);
    if (more.length > 0)
      throw new Error(
        `${[found, ...more].map(({ path, start }) => `${path}:${lineOf(textOf(path), start)}`).join(', ')} all have: ${from}`,
      );
    return found;
  }

  return {
    files,
    read,
    find,
    /** All best matches for the fragment, or none. */
    findAll: (name, from) => locate(name, from),
    /** The path of a file by the end of its path, or by its name alone if it moved. */
    file(name) {
      const path = named(name);
      if (path !== null) return path;
      const like = files.filter((file) => basename(file) === basename(name));
      throw new Error(`${name} is ${like.length === 0 ? 'no source file' : `one of ${like.join(', ')}`}`);
    },
    /** The texts of the files with all pieces replaced, in order. */
    edit(pieces) {
      const edited = new Map();
      const textOf = (path) => edited.get(path) ?? read(path);
      for (const [name, from, to] of pieces) {
        const place = find(name, from, textOf);
        edited.set(place.path, replaceAt(textOf(place.path), place, to));
      }
      return edited;
    },
    /** Whether a rename would not break the fragment: it consists of whole tokens, or is part of one literal. */
    lasts([name, from]) {
      const { path, start, end } = find(name, from);
      if (isInLiteral(tokensOf(read(path), path), start, end)) return true;
      return cheapest(findTokens(read(path), from, path)).some((at) => at.start >= start && at.end <= end);
    },
    /** Identifiers of the replacement that are unknown: neither declared there nor used in the file, or for a property in any file. */
    strangers([name, from, to]) {
      const { path, start, end } = find(name, from);
      const there = tokensOf(read(path), path);
      // Within a literal only "${name}" contains identifiers.
      const inLiteral = isInLiteral(there, start, end);
      const written = tokensOf(inLiteral ? (to.match(/(?<=\$\{)[^}]*/g) ?? []).join(';') : to, path);
      const standing = new Set([...there, ...tokensOf(from, path)].map(({ key }) => key));
      names ??= new Set(
        files.flatMap((file) => tokensOf(read(file), file).flatMap(({ key, text }) => (key === null ? [] : text))),
      );
      const isPerl = path.endsWith('.pl');
      const isDeclared = (_, i) => /^(?:const|let|my)$/.test(written[i - (isPerl ? 2 : 1)]?.text);
      const declared = new Set(written.filter(isDeclared).map(({ key }) => key));
      return written
        .filter(({ key }, i) => {
          if (key === null || standing.has(key) || declared.has(key)) return false;
          if (isPerl) return /^[$@%]$/.test(written[i - 1]?.text);
          const isProperty = key.startsWith('.') || written[i + 1]?.text === ':';
          return !isProperty || !names.has(key.replace('.', ''));
        })
        .map(({ text }) => text);
    },
  };
}

/** The test files of a name without endings: server/attacks is server/attacks.test.ts and server/attacks.proof.test.ts. */
export function findTests(root, name) {
  const plain = (path) => path.replace(/(?:\.\w+)?\.test\.ts$/, '');
  const all = listFiles(root, ['test'], /\.test\.ts$/);
  const [path, ...more] = new Set(all.map(plain).filter((one) => one.endsWith(`/${name}`)));
  const found = more.length === 0 ? path : `test/${name}`;
  const tests = all.filter((one) => plain(one) === found);
  if (tests.length === 0)
    throw new Error(`${name} is ${path === undefined ? 'no test' : `one of ${[path, ...more].join(', ')}`}`);
  return tests;
}

/** Replaces a fragment in a separate text, such as a Perl program. */
export function replaceIn(text, from, to, path) {
  const exact = findText(text, from);
  const found = exact.length > 0 ? exact : cheapest(findTokens(text, from, path));
  if (found.length !== 1) throw new Error(`${found.length} places have: ${from}`);
  return replaceAt(text, found[0], to);
}

function listFiles(root, folders, pattern) {
  return folders
    .filter((folder) => fs.existsSync(join(root, folder)))
    .flatMap((folder) => fs.readdirSync(join(root, folder), { recursive: true }).map((path) => join(folder, path)))
    .filter((path) => pattern.test(path))
    .toSorted();
}

/** The one file with this path ending, possibly with more folders in between; null: none, or several. */
function endingWith(files, name) {
  const between = new RegExp(`(?:^|/)${name.replaceAll('.', '\\.').replaceAll('/', '/(?:.*/)?')}$`);
  const isAt = [(path) => `/${path}`.endsWith(`/${name}`), (path) => between.test(path)];
  return isAt.map((is) => files.filter(is)).find((found) => found.length === 1)?.[0] ?? null;
}

const isInLiteral = (tokens, start, end) =>
  tokens.some((token) => token.key === null && token.start <= start && token.end >= end);

const lineOf = (text, at) => text.slice(0, at).split('\n').length;

/** For an error: the line that matches most of the fragment's beginning. */
function nearest(path, textOf, from) {
  if (path === null) return '';
  const text = textOf(path);
  const [source, wanted] = [tokensOf(text, path), tokensOf(from, path)];
  const matched = source.map((_, at) => matchTokens(source, at, wanted).matched);
  const most = Math.max(...matched);
  const { start } = source[matched.indexOf(most)] ?? { start: 0 };
  return most === 0 ? '' : `\nnearest, ${path}:${lineOf(text, start)}: ${text.slice(start).split('\n')[0]}`;
}

/** Finds exact matches whose first and last words are whole. */
function findText(text, from) {
  const places = [];
  for (let start = text.indexOf(from); start >= 0; start = text.indexOf(from, start + 1)) {
    const end = start + from.length;
    if (![start, end].some((at) => /^[\w$]{2}$/.test(text.slice(at - 1, at + 1))))
      places.push({ start, end, renamed: new Map(), gaps: [], language: '' });
  }
  return places;
}

/** Finds matches with their cost, the number of renamed identifiers. */
function findTokens(text, from, path) {
  const [source, wanted] = [tokensOf(text, path), tokensOf(from, path)];
  if (wanted.length === 0) return [];
  return source.flatMap((first, at) => {
    const { end, renamed, gaps } = matchTokens(source, at, wanted);
    if (end === null) return [];
    const cost = [...renamed].filter(([was, is]) => was !== is).length;
    const range = { start: first.start, end: source[end - 1].end };
    return [{ ...range, cost, renamed, language: path, gaps: gaps.map((gap) => textBetween(text, source, gap)) }];
  });
}

function cheapest(found) {
  const least = Math.min(...found.map(({ cost }) => cost));
  return found.filter(({ cost }) => cost === least);
}

const textBetween = (text, source, [first, end]) =>
  first === end ? '' : text.slice(source[first].start, source[end - 1].end);

/** Compares the tokens at this place: `end` is null without a match, and `matched` is the number of equal tokens. */
function matchTokens(source, first, wanted) {
  const [renamed, names, gaps] = [new Map(), new Map(), []];
  let at = first;
  const failed = (matched) => ({ end: null, matched, renamed, gaps });
  for (const [i, want] of wanted.entries()) {
    if (want.text === '…') {
      const end = endOfGap(source, at, wanted[i + 1]?.text);
      if (end === null) return failed(i);
      gaps.push([at, end]);
      at = end;
      continue;
    }
    const there = source[at++];
    if (there === undefined) return failed(i);
    if (want.key === null || there.key === null) {
      if (want.cut ? !there.text.startsWith(want.text) : want.text !== there.text) return failed(i);
    } else if (want.key.startsWith('.') !== there.key.startsWith('.')) return failed(i);
    else if ((renamed.get(want.key) ?? there.key) !== there.key || (names.get(there.key) ?? want.key) !== want.key)
      return failed(i);
    else {
      renamed.set(want.key, there.key);
      names.set(there.key, want.key);
    }
  }
  return { end: at, matched: wanted.length, renamed, gaps };
}

/** The next occurrence of a token outside brackets opened after `from`. */
function endOfGap(source, from, next) {
  let depth = 0;
  for (let at = from; at < source.length; at++) {
    const { text } = source[at];
    if (depth === 0 && text === next) return at;
    if (/^(?:[([{]|\$\{)$/.test(text)) depth++;
    if (/^[)\]}]$/.test(text) && --depth < 0) return null;
  }
  return null;
}

function replaceAt(text, { start, end, renamed, gaps, language }, to) {
  let [written, at, gap] = ['', 0, 0];
  for (const token of language === '' ? [] : tokensOf(to, language)) {
    const instead = token.text === '…' ? gaps[gap++] : renamed.get(token.key)?.replace(/^\./, '');
    if (instead === undefined) continue;
    written += to.slice(at, token.start) + instead;
    at = token.end;
  }
  return text.slice(0, start) + written + to.slice(at) + text.slice(end);
}

const words = (text) => new Set(text.split(' '));
const KEYWORDS = words(
  'as async await boolean break case catch class const continue default delete do else export extends false finally for function if import in instanceof interface let new null number object of readonly return satisfies static string super switch this throw true try type typeof undefined unknown using var void while yield',
);
const PERL_WORDS = words(
  'and close defined die do else elsif eval exec exit fileno for foreach fork grep if join kill last map mkdir my next not open or our print push return scalar select socket split stat sub syscall sysopen sysread syswrite undef unless unlink until vec while x',
);
const BUILT_IN = [Object, Function, Array, String, Number, RegExp, Map, Set, Promise, Date, Math, JSON, Buffer, Symbol];
const PROPERTIES = new Set(
  BUILT_IN.flatMap((one) => [one, one.prototype ?? one]).flatMap((one) => Reflect.ownKeys(one)),
);
const GLOBALS = new Set([...Reflect.ownKeys(globalThis), ...Object.keys(fs), 'Record', 'z']);

const NAME = /^[\p{L}_$][\p{L}\p{N}_$]*$/u;
const [SPACE, PERL_SPACE] = [/(?:\s|\/\/.*|\/\*[\s\S]*?\*\/)+/y, /(?:\s|(?<=^|\s)#.*)+/my];
const STRING = /'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"/y;
const CUT_STRING = /['"].*$/y;
const REGEXP = /\/(?:[^/\\\n[]|\\.|\[(?:[^\]\\\n]|\\.)*\])+\/[a-z]*/y;
const PERL_STRING = /'(?:[^'\\]|\\.)*'/y;
const WORD = /[\p{L}_$][\p{L}\p{N}_$]*|\d[\w.]*/uy;
const PERL_WORD = /[A-Za-z_]\w*|\d[\w.]*/y;
const CHUNK = /(?:[^`\\$]|\\[\s\S]|\$(?!\{))+/y;
const BEGINNING = /\$\{/y;
const known = new Map();

/** Words, literals and single signs. `key` identifies a renamable identifier; a property's key begins with a dot. */
function tokensOf(text, path) {
  const language = path.endsWith('.pl') ? 'perl' : 'ts';
  const found = known.get(`${language} ${text}`) ?? (language === 'perl' ? perlTokens(text) : scriptTokens(text));
  known.set(`${language} ${text}`, found);
  return found;
}

function scriptTokens(text) {
  const tokens = [];
  const open = [];
  const push = tokenPusher(
    tokens,
    (word, isProperty) => !(isProperty ? PROPERTIES : GLOBALS).has(word) && !KEYWORDS.has(word),
  );
  for (let at = 0; at < text.length;) {
    const inTemplate = open.at(-1) === '`';
    const space = inTemplate ? null : matchAt(SPACE, text, at);
    if (space !== null) {
      at += space.length;
      continue;
    }
    const kinds = inTemplate
      ? [CHUNK, BEGINNING]
      : [STRING, CUT_STRING, BEGINNING, ...(mayDivide(tokens.at(-1)) ? [] : [REGEXP]), WORD];
    const token = firstMatch(kinds, text, at) ?? String.fromCodePoint(text.codePointAt(at));
    const isLiteral = inTemplate
      ? token !== '`' && token !== '${'
      : /^['"]/.test(token) && matchAt(STRING, token, 0) === null;
    push(token, at, inTemplate, isLiteral && at + token.length === text.length);
    at += token.length;
    if (token === '`' && inTemplate) open.pop();
    else if (token === '`' || token === '{' || token === '${') open.push(token === '`' ? '`' : '{');
    else if (token === '}' && !inTemplate) open.pop();
  }
  return tokens;
}

function perlTokens(text) {
  const tokens = [];
  const push = tokenPusher(tokens, (word) => !PERL_WORDS.has(word));
  for (let at = 0; at < text.length;) {
    const space = matchAt(PERL_SPACE, text, at);
    const token = space ?? firstMatch([PERL_STRING, PERL_WORD], text, at) ?? String.fromCodePoint(text.codePointAt(at));
    if (space === null) push(token, at);
    at += token.length;
  }
  return tokens;
}

function tokenPusher(tokens, isName) {
  return (text, start, isText = false, cut = false) => {
    const isProperty = tokens.at(-1)?.text === '.' && tokens.at(-2)?.text !== '.';
    const named = !isText && NAME.test(text) && isName(text, isProperty);
    tokens.push({ text, start, end: start + text.length, key: named ? (isProperty ? `.${text}` : text) : null, cut });
  };
}

/** A slash after a value divides; elsewhere it starts a regular expression. */
function mayDivide(before) {
  return (
    before !== undefined && (/^[)\]}'"`\d]/.test(before.text) || (NAME.test(before.text) && !KEYWORDS.has(before.text)))
  );
}

function firstMatch(patterns, text, at) {
  for (const pattern of patterns) {
    const found = matchAt(pattern, text, at);
    if (found !== null) return found;
  }
  return null;
}

function matchAt(pattern, text, at) {
  pattern.lastIndex = at;
  return pattern.exec(text)?.[0] ?? null;
}
