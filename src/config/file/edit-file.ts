// config/file/edit-file.ts: adds network rules to a configuration file or removes them, and leaves every other byte alone.
// Invariant: the new text means exactly the old one plus the change; it is parsed again before it is written. A file that
// cannot be changed this way is refused.
import {
  closeSync,
  fchmodSync,
  fchownSync,
  fsyncSync,
  lstatSync,
  openSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { isMap, isScalar, isSeq, parseDocument, type Node, type Pair, type YAMLMap, type YAMLSeq } from 'yaml';
import type { ConfigFile } from '../../protocol/config/config.ts';
import { AgsError } from '../../protocol/errors.ts';
import { parseLayer } from './parse.ts';
import type { LayerFile } from './read.ts';

type List = 'allow' | 'deny';

export interface RuleEdit {
  readonly list: List;
  readonly add: readonly string[];
  /** Entries of the other list, in the spelling of the file. */
  readonly drop: readonly string[];
}

/** The new content. `file` is the old one, with empty bytes if there is none yet. */
export function editRules(file: LayerFile, edit: RuleEdit): Buffer {
  const before = parseLayer(file).values;
  const text = new TextDecoder('utf-8', { ignoreBOM: true }).decode(file.bytes);
  const other: List = edit.list === 'allow' ? 'deny' : 'allow';
  const dropped = edit.drop.reduce((now, rule) => dropItem(now, other, rule), text);
  const after = Buffer.from(edit.add.reduce((now, rule) => addItem(now, edit.list, rule), dropped));
  const expected = apply(before, edit, other);
  if (!means({ ...file, bytes: after }, expected))
    throw new AgsError('config.invalid', `${file.label} is written in a way that ags cannot change safely.`, {
      hint: `Add the rule yourself, under network: ${edit.list}: [${edit.add.map((rule) => JSON.stringify(rule)).join(', ')}]`,
    });
  return after;
}

function apply(values: ConfigFile, edit: RuleEdit, other: List): ConfigFile {
  const network = values.network ?? {};
  const left = network[other]?.filter((rule) => !edit.drop.includes(rule));
  const list = [...(network[edit.list] ?? []), ...edit.add];
  return {
    ...values,
    network: {
      ...network,
      ...(list.length > 0 && { [edit.list]: list }),
      ...(left !== undefined && { [other]: left }),
    },
  };
}

function means(file: LayerFile, expected: ConfigFile): boolean {
  try {
    return isDeepStrictEqual(withoutEmpty(parseLayer(file).values), withoutEmpty(expected));
  } catch (error) {
    if (error instanceof AgsError) return false;
    throw error;
  }
}

/** An empty list means the same as no list. */
function withoutEmpty(values: ConfigFile): unknown {
  const network = Object.entries(values.network ?? {}).filter(([, value]) => !Array.isArray(value) || value.length > 0);
  return { ...values, network: Object.fromEntries(network) };
}

function addItem(text: string, list: List, rule: string): string {
  const end = text.includes('\r\n') ? '\r\n' : '\n';
  const document = parseDocument(text, { uniqueKeys: false });
  const root = document.contents as Node | null;
  const network = pairOf(root, 'network');
  const pair = pairOf(network?.value, list);
  if (isSeq(pair?.value)) return addToList(text, pair.value, rule, end);
  if (pair !== undefined) return addLines(text, pair.key, [`${indentOf(text, pair.key)}  - ${scalar(rule)}`], end);
  if (isMap(network?.value)) {
    if (network.value.flow === true) return addToFlow(text, network.value, `${list}: [${scalar(rule)}]`);
    const indent = indentOf(text, (network.value.items[0] as Pair<Node>).key);
    return addLines(text, network.key, [`${indent}${list}:`, `${indent}  - ${scalar(rule)}`], end);
  }
  if (network !== undefined) {
    const indent = indentOf(text, network.key);
    return addLines(text, network.key, [`${indent}  ${list}:`, `${indent}    - ${scalar(rule)}`], end);
  }
  if (isMap(root) && root.flow === true) return addToFlow(text, root, `network: { ${list}: [${scalar(rule)}] }`);
  const closed = text === '' || text.endsWith('\n') ? text : `${text}${end}`;
  const gap = closed.trim() === '' ? '' : end;
  return `${closed}${gap}network:${end}  ${list}:${end}    - ${scalar(rule)}${end}`;
}

function addToList(text: string, seq: YAMLSeq, rule: string, end: string): string {
  if (seq.flow === true) return addToFlow(text, seq, scalar(rule));
  const last = seq.items.at(-1) as Node;
  return addLines(text, last, [`${indentOf(text, last)}- ${scalar(rule)}`], end);
}

/** Inserts after the last entry, before anything that follows it. */
function addToFlow(text: string, collection: YAMLSeq | YAMLMap, added: string): string {
  const last = collection.items.at(-1) as Node | Pair<Node, Node | null> | undefined;
  const node = last !== undefined && 'key' in last ? (last.value ?? last.key) : last;
  const at = node === undefined ? startOf(collection) + 1 : valueEnd(node);
  return insert(text, at, node === undefined ? added : `, ${added}`);
}

/** Inserts below the line on which the node ends. */
function addLines(text: string, node: Node, lines: readonly string[], end: string): string {
  const at = text.indexOf('\n', Math.max(0, valueEnd(node) - 1)) + 1;
  return at === 0
    ? `${text}${end}${lines.join(end)}${end}`
    : insert(text, at, lines.map((line) => line + end).join(''));
}

function dropItem(text: string, list: List, rule: string): string {
  const document = parseDocument(text, { uniqueKeys: false });
  const seq = pairOf(pairOf(document.contents, 'network')?.value, list)?.value;
  if (!isSeq(seq)) return text;
  const items = seq.items as Node[];
  const i = items.findIndex((item) => isScalar(item) && item.value === rule);
  const item = items[i];
  if (item === undefined) return text;
  const [previous, next] = [items[i - 1], items[i + 1]];
  if (seq.flow !== true) {
    const from = text.lastIndexOf('\n', startOf(item)) + 1;
    const to = text.indexOf('\n', valueEnd(item) - 1) + 1 || text.length;
    return text.slice(0, from) + text.slice(to);
  }
  if (next !== undefined) return text.slice(0, startOf(item)) + text.slice(startOf(next));
  return text.slice(0, previous === undefined ? startOf(item) : valueEnd(previous)) + text.slice(valueEnd(item));
}

function pairOf(node: unknown, name: string): Pair<Node, Node | null> | undefined {
  if (!isMap(node)) return undefined;
  return (node.items as Pair<Node, Node | null>[]).find(({ key }) => isScalar(key) && key.value === name);
}

function startOf(node: Node): number {
  return node.range?.[0] ?? 0;
}

function valueEnd(node: Node): number {
  return node.range?.[1] ?? 0;
}

function indentOf(text: string, node: Node): string {
  return /^[ ]*/.exec(text.slice(text.lastIndexOf('\n', Math.max(0, startOf(node) - 1)) + 1))?.[0] ?? '';
}

function insert(text: string, at: number, added: string): string {
  return text.slice(0, at) + added + text.slice(at);
}

/** Quoted so that it is also safe inside brackets, where a comma separates entries. */
function scalar(rule: string): string {
  return /^[a-z][a-z0-9-]*(\.[a-z0-9-]+)+$/.test(rule) ? rule : JSON.stringify(rule);
}

/**
 * Writes all or nothing, also when interrupted. An existing file keeps its owner and mode. A new one gets the owner of its
 * directory, so that root leaves no file that the project's owner cannot change. Links are never followed.
 */
export function writeWhole(path: string, content: string | Uint8Array, mode: number): void {
  const old = lstatSync(path, { throwIfNoEntry: false });
  const kept = old?.isFile() === true ? old : undefined;
  const owner = kept ?? statSync(dirname(path));
  const draft = `${path}.${process.hrtime.bigint().toString(36)}.new`;
  const fd = openSync(draft, 'wx', mode);
  try {
    writeFileSync(fd, content);
    if (process.geteuid?.() === 0) fchownSync(fd, owner.uid, owner.gid);
    if (kept !== undefined) fchmodSync(fd, kept.mode & 0o777);
    fsyncSync(fd);
    renameSync(draft, path);
  } finally {
    closeSync(fd);
    rmSync(draft, { force: true });
  }
}
