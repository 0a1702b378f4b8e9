// lib/tar-header.ts: the first block of a member of a tar archive, of nobody's and from the beginning of time.

export const BLOCK = 512;

export interface TarHeader {
  readonly name: string;
  readonly bytes: number;
  readonly mode: number;
  readonly kind: 'file' | 'directory';
  /** What a name is too long for. */
  readonly prefix: string;
  /** As GNU tar fills the fields for devices. */
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

/** A text of a header, up to its first zero; a byte a character. */
export function headerText(header: Buffer, from: number, to: number): string {
  return header.toString('latin1', from, to).replace(/\0.*$/s, '');
}

/** NaN: there is none. */
export function headerBytes(header: Buffer): number {
  return Number.parseInt(header.toString('latin1', 124, 135), 8);
}
