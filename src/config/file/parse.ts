// config/file/parse.ts: parses one configuration file, checks it against the schema and notes the position of every value.
// Loaded only for a file that is not in the cache, because yaml and zod load slowly.
// Invariant: every problem is reported with file:line:column and its key, and one problem makes the whole file invalid.
// Accepted text has no anchors, aliases, tags, directives or explicit keys and is neither deep nor long. Some of these grow without bound;
// very deep nesting crashes the process inside the YAML library, where nothing can catch it.
import { isUtf8 } from 'node:buffer';
import {
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  parseDocument,
  type Node,
  type Pair,
  type YAMLMap,
  CST,
  Lexer,
} from 'yaml';
import type { z } from 'zod';
import { CONFIGURED_AGENTS } from '../../protocol/config/agents.ts';
import { ConfigFile } from '../../protocol/config/config.ts';
import { AgsError } from '../../protocol/errors.ts';
import { invisibleIn, visible } from '../../lib/sanitize.ts';
import { listKeys, type KeyDoc } from './keys.ts';
import { KEYS_HINT, type Layer } from './layer.ts';
import { type LayerFile } from './read.ts';
import { PRESET_NAMES } from '../network/presets.ts';
import { suggest } from './suggest.ts';

export function parseLayer(file: LayerFile): Layer {
  const text = decode(file);
  const report = createReport(file.label, text);
  const control = UNREADABLE.exec(text);
  if (control)
    report.fail(control.index, `${visible(control[0])} is a control character, which is not allowed in this file`);
  const strange = outsideSubset(text);
  if (strange) report.fail(strange.offset, strange.message);
  // The library's check for repeated keys takes quadratic time; the one below is linear.
  const document = parseDocument(text, { prettyErrors: false, uniqueKeys: false, stringKeys: true });
  const broken = document.errors[0] ?? document.warnings[0];
  if (broken?.code === 'MULTIPLE_DOCS')
    report.fail(broken.pos[0], 'a second document begins here; only one is allowed');
  if (broken) report.fail(broken.pos[0], `not valid YAML: ${visible(broken.message)}`);

  const found = readNode(document.contents, '', report, listKeys());
  report.stopIfAny();
  const result = ConfigFile.safeParse(found.value ?? {});
  if (!result.success) {
    for (const issue of result.error.issues) describe(issue, found, report);
    report.stopIfAny();
    throw result.error;
  }
  for (const [i, name] of (result.data.network?.presets ?? []).entries())
    if (!PRESET_NAMES.includes(name))
      report.add(nearest(found, `network.presets[${i}]`), () => unknownPreset(`network.presets[${i}]`, name));
  report.stopIfAny();
  const at = [...found.offsets].map(([key, offset]) => [key, report.placeOf(offset)]);
  return { kind: file.kind, values: result.data, at: Object.fromEntries(at) as Record<string, string> };
}

interface Found {
  /** Plain data; map keys are own properties. */
  readonly value: unknown;
  /** By key path: the position of the value. */
  readonly offsets: ReadonlyMap<string, number>;
  /** By key path: the position of the key's name. */
  readonly names: ReadonlyMap<string, number>;
  readonly keys: readonly KeyDoc[];
}

type Report = ReturnType<typeof createReport>;

function createReport(label: string, text: string) {
  const problems: { offset: number; message: string }[] = [];
  const lines = new LineCounter();
  for (let start = 0; start >= 0; start = text.indexOf('\n', start) + 1 || -1) lines.addNewLine(start);

  const placeOf = (offset: number): string => {
    const { line, col } = lines.linePos(offset);
    return `${label}:${line}:${col}`;
  };
  const add = (offset: number, message: () => string): void => {
    if (problems.length < MAX_KEPT) problems.push({ offset, message: message() });
  };
  const stopIfAny = (): void => {
    if (problems.length === 0) return;
    throw invalid(
      problems.toSorted((a, b) => a.offset - b.offset).map(({ offset, message }) => `${placeOf(offset)}: ${message}`),
    );
  };
  const fail = (offset: number, message: string): never => {
    throw invalid([`${placeOf(offset)}: ${message}`]);
  };
  return { placeOf, add, fail, stopIfAny };
}

function invalid(problems: readonly string[]): AgsError {
  const shown =
    problems.length > MAX_SHOWN
      ? [...problems.slice(0, MAX_SHOWN), `and ${problems.length - MAX_SHOWN} more`]
      : problems;
  return new AgsError('config.invalid', shown.join('\n'), { hint: KEYS_HINT, details: { problems } });
}

const MAX_SHOWN = 10;
const MAX_KEPT = 100;

// Includes a carriage return inside a line: terminals use it to overwrite text.
const UNREADABLE = /[^\P{Cc}\t\n\r]|\r(?!\n)/u;

function decode(file: LayerFile): string {
  if (isUtf8(file.bytes)) return new TextDecoder().decode(file.bytes);
  let line = 1;
  let start = 0;
  for (
    let end = file.bytes.indexOf(0x0a);
    end >= 0 && isUtf8(file.bytes.subarray(start, end));
    end = file.bytes.indexOf(0x0a, start)
  ) {
    line++;
    start = end + 1;
  }
  throw invalid([`${file.label}:${line}:1: this line is not UTF-8 text`]);
}

function readNode(node: Node | null, path: string, report: Report, keys: readonly KeyDoc[]): Found {
  const offsets = new Map<string, number>();
  const names = new Map<string, number>();
  const value = read(node, path);
  return { value, offsets, names, keys };

  function read(at: Node | null | undefined, key: string): unknown {
    if (at?.range) offsets.set(key, at.range[0]);
    if (isMap(at)) return readMap(at, key);
    if (isScalar(at) && (key === 'docker' || key === 'compose')) return { enabled: read(at, `${key}.enabled`) };
    if (isScalar(at) && key === 'home') return { keep: read(at, 'home.keep') };
    if ((isSeq(at) || (isScalar(at) && typeof at.value === 'string')) && key === 'setup')
      return { run: read(at, 'setup.run') };
    if (isSeq(at)) return at.items.map((item, i) => read(item as Node, `${key}[${i}]`));
    const isService = SERVICE.test(key);
    if (!isScalar(at)) return isService && at == null ? { preset: 'none' } : null;
    const scalar = at.value;
    if (isService && (scalar === null || scalar === false)) return { preset: 'none' };
    // Numbers and booleans are accepted as values of variables, in their own spelling.
    if (
      (/^(env\.set|compose\.env)\./.test(key) || SERVICE_ENV.test(key)) &&
      (typeof scalar === 'number' || typeof scalar === 'boolean')
    )
      return at.source ?? String(scalar);
    if (typeof scalar === 'string') refuseUnseen(scalar, at.range?.[0] ?? 0);
    // A string is short for a preset.
    if (isService && typeof scalar === 'string') return { preset: scalar };
    return scalar;
  }

  function readMap(map: YAMLMap, key: string): Record<string, unknown> {
    const entries = new Map<string, unknown>();
    for (const pair of map.items as Pair<Node, Node | null>[]) {
      const name = isScalar(pair.key) ? String(pair.key.value) : '';
      const offset = pair.key.range?.[0] ?? 0;
      const inner = key === '' ? name : `${key}.${name}`;
      refuseUnseen(name, offset);
      names.set(inner, offset);
      if (entries.has(name)) report.add(offset, () => `duplicate key ${quote(name)}`);
      else if (name === '__proto__') report.add(offset, () => `${quote(name)} cannot be used as a key`);
      const inside = read(pair.value, inner);
      // A section whose keys are all commented out is empty, not null.
      const doc = keys.find((k) => k.path === plainPath(inner));
      if (inside !== null || doc === undefined || doc.kind === 'value') entries.set(name, inside);
      else entries.set(name, undefined);
    }
    return Object.fromEntries([...entries].filter(([, v]) => v !== undefined));
  }

  function refuseUnseen(text: string, offset: number): void {
    const unseen = invisibleIn(text);
    if (unseen.length > 0) report.add(offset, () => `${quote(text)} has invisible characters: ${unseen.join(', ')}`);
  }
}

function describe(issue: z.core.$ZodIssue, found: Found, report: Report): void {
  const inside = issue.code === 'invalid_union' ? meantForm(issue) : null;
  if (inside !== null) {
    for (const one of inside) describe({ ...one, path: [...issue.path, ...one.path] }, found, report);
    return;
  }
  const path = issue.path.reduce<string>(
    (text, part) =>
      typeof part === 'number' ? `${text}[${part}]` : text === '' ? String(part) : `${text}.${String(part)}`,
    '',
  );
  if (issue.code === 'unrecognized_keys') {
    for (const name of issue.keys)
      report.add(found.names.get(path === '' ? name : `${path}.${name}`) ?? 0, () =>
        unknownKey(path, name, found.keys),
      );
    return;
  }
  if (issue.code === 'invalid_key') {
    report.add(found.names.get(path) ?? 0, () => `${path}: expected ${issue.issues[0]?.message}`);
    return;
  }
  const value = valueAt(found.value, issue.path);
  report.add(
    nearest(found, path),
    () =>
      `${path === '' ? '' : `${path}: `}expected ${issue.message}${keysBelow(issue, path, found)}, found ${inWords(value, HOLDS_KEY.test(path))}${asList(value, issue.path, path, found)}`,
  );
}

/** Of several forms, the one whose kind of value was written: what is wrong lies inside. null: none, so all forms are named. */
function meantForm({ errors }: z.core.$ZodIssueInvalidUnion): readonly z.core.$ZodIssue[] | null {
  return errors.find((issues) => issues.length > 0 && issues.every(isInside)) ?? null;
}

function isInside(issue: z.core.$ZodIssue): boolean {
  return (
    issue.path.length > 0 ||
    issue.code === 'unrecognized_keys' ||
    (issue.code === 'invalid_union' && meantForm(issue) !== null)
  );
}

/** " (allow, deny)": what a section consists of. */
function keysBelow(issue: z.core.$ZodIssue, path: string, { keys }: Found): string {
  if (path === '' || issue.code !== 'invalid_type' || issue.expected !== 'object') return '';
  const below = childKeys(path, keys);
  const more = below.length > MAX_NAMED ? ', ...' : '';
  return below.length === 0 ? '' : ` (${below.slice(0, MAX_NAMED).join(', ')}${more})`;
}

const MAX_NAMED = 8;

/** What to write instead, if one text stands where a list of such texts belongs. */
function asList(value: unknown, at: readonly PropertyKey[], path: string, found: Found): string {
  if (typeof value !== 'string' || HOLDS_KEY.test(path)) return '';
  const tried = ConfigFile.safeParse(withValue(found.value, at, [value]));
  if (tried.error?.issues.some(({ path: wrong }) => at.every((part, i) => wrong[i] === part)) === true) return '';
  // A list is short for some sections, which the file then does not name.
  const written = found.names.has(path) ? path : path.replace(/\.[^.]*$/, '');
  const plain = /^[\w./~][\w ./=@~*-]*$/.test(value) ? value : JSON.stringify(value);
  return `. Write a list: ${written.split('.').at(-1)}: [${visible(plain)}]`;
}

function withValue(root: unknown, [part, ...rest]: readonly PropertyKey[], value: unknown): unknown {
  if (part === undefined) return value;
  if (Array.isArray(root)) return root.map((one: unknown, i) => (i === part ? withValue(one, rest, value) : one));
  const map = (root ?? {}) as Record<PropertyKey, unknown>;
  return { ...map, [part]: withValue(map[part], rest, value) };
}

function childKeys(section: string, keys: readonly KeyDoc[]): string[] {
  const prefix = section === '' ? '' : `${plainPath(section)}.`;
  return keys
    .filter(({ path }) => path.startsWith(prefix) && !/[.[]/.test(path.slice(prefix.length)))
    .map(({ path }) => path.slice(prefix.length));
}

function unknownKey(section: string, name: string, keys: readonly KeyDoc[]): string {
  const siblings = section === 'agents' ? [...CONFIGURED_AGENTS] : childKeys(section, keys);
  const elsewhere = keys.find(({ path }) => path.endsWith(`.${name}`))?.path;
  const near = suggest(name, siblings) ?? elsewhere;
  const where = section === '' ? '' : ` in ${section}`;
  return `unknown key ${quote(name)}${where}${near ? ` (did you mean "${near}"?)` : `; known keys: ${siblings.join(', ')}`}`;
}

function unknownPreset(key: string, name: string): string {
  const near = suggest(name, PRESET_NAMES);
  return `${key}: unknown built-in list ${quote(name)}${near ? ` (did you mean "${near}"?)` : `; known lists: ${PRESET_NAMES.join(', ')}`}`;
}

const SERVICE_ENV = /^services\.[^.[]+\.(env\.|(password|version)$)/;
const SERVICE = /^services\.[^.[]+$/;

function plainPath(path: string): string {
  return path.replace(/\[\d+\]/g, '[]').replace(/^(services|agents)\.[^.[]+/, '$1.<name>');
}

function valueAt(root: unknown, path: readonly PropertyKey[]): unknown {
  return path.reduce<unknown>(
    (value, part) =>
      typeof value === 'object' && value !== null ? (value as Record<PropertyKey, unknown>)[part] : undefined,
    root,
  );
}

/** The position of the value, or of its nearest ancestor if it is missing. */
function nearest(found: Found, path: string): number {
  for (let key = path; key !== ''; key = key.replace(/(\.[^.[]*|\[\d+\]|^[^.[]+)$/, '')) {
    const offset = found.offsets.get(key) ?? found.names.get(key);
    if (offset !== undefined) return offset;
  }
  return found.offsets.get('') ?? 0;
}

/** Here somebody may have written a key itself. No message repeats it. */
const HOLDS_KEY = /^(agents\.[^.[]+\.key|secrets\[\d+\]\.from|network\.upstream\[\d+\]\.auth)$/;

function inWords(value: unknown, secret = false): string {
  if (value === undefined || value === null) return 'nothing';
  if (Array.isArray(value)) return 'a list';
  if (secret) return 'a value itself, which does not belong into this file';
  return typeof value === 'object' ? 'keys' : quote(value);
}

/** Escapes terminal control characters, because the file is not checked yet. */
function quote(value: unknown): string {
  const text = visible(typeof value === 'string' ? `"${value}"` : String(value));
  return text.length > 80 ? `${text.slice(0, 76)}..."` : text;
}

interface Problem {
  readonly offset: number;
  readonly message: string;
}

/** The first forbidden token, or undefined. The text must have no control characters except tabs and line ends. */
function outsideSubset(text: string): Problem | undefined {
  let offset = 0;
  let depth = 0;
  let indicators = 0;
  let tokens = 0;
  let isText = false;
  for (const token of new Lexer().lex(text)) {
    const type = isText ? null : CST.tokenType(token);
    isText = token === CST.SCALAR;
    const refusal = type === null ? undefined : REFUSED[type];
    if (refusal) return { offset, message: refusal };
    if (type === 'flow-seq-start' || type === 'flow-map-start') depth++;
    if (type === 'flow-seq-end' || type === 'flow-map-end') depth--;
    if (type === 'seq-item-ind') indicators++;
    if (type === 'newline') indicators = 0;
    const indented = type === 'space' && token.length > MAX_INDENT && (offset === 0 || text[offset - 1] === '\n');
    if (depth > MAX_DEPTH || indicators > MAX_DEPTH || indented)
      return { offset, message: 'this is nested too deeply' };
    if (++tokens > MAX_TOKENS) return { offset, message: 'the file is too long' };
    if (!MARKERS.has(token)) offset += token.length;
  }
  return undefined;
}

const MAX_DEPTH = 8;
const MAX_INDENT = 64;
/** About 5,000 lines. */
const MAX_TOKENS = 30_000;
/** Tokens for states of the lexer rather than for text. */
const MARKERS = new Set([CST.DOCUMENT, CST.FLOW_END, CST.SCALAR]);
const REFUSED: Readonly<Record<string, string>> = {
  anchor: 'anchors (&name) cannot be used here',
  alias: 'aliases (*name) cannot be used here; put a pattern that begins with * in quotes',
  tag: 'tags (!name) cannot be used here; put a text that begins with ! in quotes',
  'directive-line': 'directives (%...) cannot be used here',
  'explicit-key-ind': 'keys with "?" in front cannot be used here',
};
