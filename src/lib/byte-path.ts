// lib/byte-path.ts: shows paths whose names need not be UTF-8, as names on Linux are bytes.
import { isUtf8 } from 'node:buffer';

/** Bytes that are not text are escaped: such a path can be shown, and not opened. */
export function pathOf(at: string, name: Buffer): string {
  const text = isUtf8(name)
    ? name.toString('utf8')
    : name.toString('latin1').replace(/[\x80-\xff]/g, (char) => `\\x${char.charCodeAt(0).toString(16)}`);
  return at === '' ? text : `${at}/${text}`;
}
