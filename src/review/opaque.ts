// review/opaque.ts: finds the directories of an overlay's upper that hide the lower ones. The mark is an extended
// attribute, which Node cannot read; GNU tar writes it into the PAX headers of an archive of empty directories.
// Invariant: an archive that is not exactly understood is refused. A missed opaque mark would only lose deletions, but
// "redirect" and "metacopy" would make files appear that the upper does not hold.
import { isUtf8 } from 'node:buffer';
import { AgsError } from '../protocol/errors.ts';

/** The tar command, to be run in an inspection with the upper as its working directory. Do not run it without
    directories: tar makes no empty archive. */
export function opaqueProbe(directories: readonly string[]): { argv: string[]; input: Buffer } {
  const attributes = ['--xattrs', '--xattrs-include=user.overlay.*', '--format=posix'];
  const names = ['--no-recursion', '--null', '-T', '-'];
  // tar before 1.29 takes names for options even after --null; the prefix "./" prevents that.
  return {
    argv: ['tar', ...attributes, '-cf', '-', ...names],
    input: Buffer.from(directories.map((path) => `./${path}\0`).join('')),
  };
}

/** With `asked`, the archive must hold each of these directories exactly once, and no other. */
export function parseOpaque(paxTar: Buffer, asked?: readonly string[]): Set<string> {
  const opaque = new Set<string>();
  const answered = new Set<string>();
  let extended: Extended = { path: null, opaque: false };
  for (let at = 0; !isZero(block(paxTar, at));) {
    const header = readHeader(block(paxTar, at));
    at += BLOCK;
    if (header.type === 'x') {
      if (header.bytes > MAX_EXTENDED || at + header.bytes > paxTar.length)
        throw notUnderstood('an extended header is too long');
      extended = readExtended(paxTar.subarray(at, at + header.bytes));
      at += Math.ceil(header.bytes / BLOCK) * BLOCK;
      continue;
    }
    if (header.type !== '5' || header.bytes !== 0) throw notUnderstood('something in it is not a directory');
    const path = relativePath(extended.path ?? header.path);
    if (answered.has(path)) throw notUnderstood('a directory is there twice');
    answered.add(path);
    if (extended.opaque) opaque.add(path);
    extended = { path: null, opaque: false };
  }
  if (asked && (asked.length !== answered.size || !asked.every((path) => answered.has(path)))) {
    throw notUnderstood('it does not answer for every directory');
  }
  return opaque;
}

interface Extended {
  readonly path: Buffer | null;
  readonly opaque: boolean;
}

const BLOCK = 512;
const MAX_EXTENDED = 1024 * 1024;
const PLAIN_KEYS = new Set(['mtime', 'atime', 'ctime', 'uid', 'gid', 'uname', 'gname']);
const OVERLAY = 'SCHILY.xattr.user.overlay.';
// Attributes of the kernel itself. It stores a mark that a program inside tried to set under "overlay.", without effect.
const HARMLESS = /^(origin|impure|uuid|nlink|upper|protattr|overlay\..*)$/s;

function block(archive: Buffer, at: number): Buffer {
  // A complete archive ends with blocks of zeros; one without them was cut off.
  if (at + BLOCK > archive.length) throw notUnderstood('it ends too early');
  return archive.subarray(at, at + BLOCK);
}

function readHeader(header: Buffer): { type: string; bytes: number; path: Buffer } {
  if (header.toString('latin1', 257, 265) !== 'ustar\x0000') throw notUnderstood('a header has no ustar mark');
  const sum = header.reduce((total, byte, index) => total + (index >= 148 && index < 156 ? 0x20 : byte), 0);
  if (octal(header.subarray(148, 156)) !== sum) throw notUnderstood('a header has a wrong checksum');
  const prefix = text(header.subarray(345, 500));
  const name = text(header.subarray(0, 100));
  return {
    type: String.fromCharCode(header[156] ?? 0),
    bytes: octal(header.subarray(124, 136)),
    path: prefix.length > 0 ? Buffer.concat([prefix, Buffer.from('/'), name]) : name,
  };
}

// Each record is "<length of the whole record> <key>=<value>\n"; the length decides, so a value may hold any bytes.
function readExtended(records: Buffer): Extended {
  let path: Buffer | null = null;
  let opaque = false;
  for (let at = 0; at < records.length;) {
    const digits = /^([1-9][0-9]{0,6}) /.exec(records.toString('latin1', at, at + 8))?.[1];
    const end = at + Number(digits ?? 0);
    if (digits === undefined || end > records.length || records[end - 1] !== 0x0a)
      throw notUnderstood('a record is malformed');
    const record = records.subarray(at + digits.length + 1, end - 1);
    const equals = record.indexOf('=');
    if (equals < 1) throw notUnderstood('a record is malformed');
    const key = record.toString('latin1', 0, equals);
    const value = record.subarray(equals + 1);
    if (key === 'path') path = value;
    else if (key.startsWith(OVERLAY)) opaque = isOpaqueMark(key.slice(OVERLAY.length), value) || opaque;
    else if (!PLAIN_KEYS.has(key)) throw notUnderstood(`it has a record ${JSON.stringify(key)}`);
    at = end;
  }
  return { path, opaque };
}

function isOpaqueMark(attribute: string, value: Buffer): boolean {
  if (attribute === 'opaque' && value.toString('latin1') === 'y') return true;
  if (HARMLESS.test(attribute)) return false;
  throw notUnderstood(`a directory has the overlay attribute ${JSON.stringify(attribute)}`);
}

function relativePath(raw: Buffer): string {
  if (!isUtf8(raw)) throw notUnderstood('a path is not UTF-8');
  const path = raw.toString('utf8').replace(/^\.\//, '').replace(/\/$/, '');
  const names = path.split('/');
  if (names.some((name) => ['', '.', '..'].includes(name))) throw notUnderstood('a path leads elsewhere');
  return path;
}

function text(field: Buffer): Buffer {
  const end = field.indexOf(0);
  return end < 0 ? field : field.subarray(0, end);
}

function octal(field: Buffer): number {
  const digits = /^([0-7]+)[\0 ]*$/.exec(field.toString('latin1'))?.[1];
  if (digits === undefined) throw notUnderstood('a number is malformed');
  return Number.parseInt(digits, 8);
}

function isZero(bytes: Buffer): boolean {
  return bytes.every((byte) => byte === 0);
}

function notUnderstood(problem: string): AgsError {
  return new AgsError(
    'capture.refused',
    `The deleted directories cannot be listed: the answer of tar is not understood (${problem}).`,
    {
      hint: 'Install GNU tar 1.27 or newer. If you have it, ags cannot read these files safely; delete the sandbox: ags rm',
    },
  );
}
