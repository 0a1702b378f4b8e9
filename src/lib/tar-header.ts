// lib/tar-header.ts: the header block of a tar member, with owner 0 and time 0.

export const BLOCK = 512;

export interface TarHeader {
  readonly name: string;
  readonly bytes: number;
  readonly mode: number;
  readonly kind: 'file' | 'directory';
  /** The directory part of a name that is too long for the name field. */
  readonly prefix: string;
  /** The device fields as GNU tar fills them. */
  readonly devices: '' | '0000000\x000000000\0';
}

export function tarHeader({ name, bytes, mode, kind, prefix, devices }: TarHeader): Buffer {
  const header = Buffer.alloc(BLOCK);
  const octal = (value: number, digits: number): string => `${value.toString(8).padStart(digits, '0')}\0`;
  header.write(name, 0, 'latin1');
  header.write(octal(mode, 7), 100, 'latin1');
  header.write(octal(0, 7) + octal(0, 7), 108, 'latin1');
  header.write(octal(bytes, 11) + octal(0, 11), 124, 'latin1');
  header.write(`        ${kind === 'directory' ? '5' : '0'}`, 148, 'latin1');
  header.write('ustar\x0000', 257, 'latin1');
  header.write(devices, 329, 'latin1');
  header.write(prefix, 345, 'latin1');
  const sum = header.reduce((total, byte) => total + byte, 0);
  header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1');
  return header;
}

/** A text field of a header, up to its first zero; one byte per character. */
export function headerText(header: Buffer, from: number, to: number): string {
  return header.toString('latin1', from, to).replace(/\0.*$/s, '');
}

/** NaN: the size field is invalid. */
export function headerBytes(header: Buffer): number {
  return Number.parseInt(header.toString('latin1', 124, 135), 8);
}
