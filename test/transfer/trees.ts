// test/transfer/trees.ts: hostile archives of a service's data directory.
import { tarHeader, type TarHeader } from '../../src/lib/tar-header.ts';

const GNU = '0000000\x000000000\0';
export type Piece = Partial<TarHeader> & { content?: Buffer; change?: (header: Buffer) => void };
export const ROOT: Piece = { name: './', kind: 'directory', mode: 0o700 };

/** Writes headers with correct checksums. */
export function tar(pieces: readonly Piece[], end = Buffer.alloc(1024)): Buffer {
  const blocks = pieces.flatMap(({ content = Buffer.alloc(0), change, ...given }) => {
    const header = tarHeader({
      name: './x',
      mode: 0o600,
      kind: 'file',
      prefix: '',
      devices: GNU,
      bytes: content.length,
      ...given,
    });
    change?.(header);
    const sum = header.fill(0x20, 148, 156).reduce((total, byte) => total + byte, 0);
    header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1');
    return [header, content, Buffer.alloc((512 - (content.length % 512)) % 512)];
  });
  return Buffer.concat([...blocks, end]);
}

function typed(type: string, link = ''): (header: Buffer) => void {
  return (header) => {
    header.write(type, 156, 'latin1');
    header.write(link, 157, 'latin1');
  };
}

const kinds = ['1', '2', '3', '4', '6', '7', 'x', 'g', 'L', 'K', 'S', '\0'];

/** Links, devices, owners, set-id bits, extensions. */
export const ODD_KINDS: Readonly<Record<string, Buffer>> = {
  ...Object.fromEntries(kinds.map((type) => [`type ${type}`, tar([ROOT, { change: typed(type, '/etc/passwd') }])])),
  'through a link': tar([
    ROOT,
    { name: './l', change: typed('2', '/tmp') },
    { name: './l/ags-was-here', content: Buffer.from('x') },
  ]),
  'set-id': tar([ROOT, { mode: 0o4755 }]),
  'readable by all': tar([ROOT, { mode: 0o644 }]),
  'directory for all': tar([ROOT, { name: './d/', kind: 'directory', mode: 0o777 }]),
  'an owner': tar([ROOT, { change: (header) => header.write('0000001', 108, 'latin1') }]),
  'a time': tar([ROOT, { change: (header) => header.write('00000000001', 136, 'latin1') }]),
  'a user name': tar([ROOT, { change: (header) => header.write('root', 265, 'latin1') }]),
  'a directory with content': tar([ROOT, { name: './d/', kind: 'directory', mode: 0o700, content: Buffer.from('x') }]),
};

const names = [
  'x',
  '/x',
  '/etc/x',
  '../x',
  './../x',
  './a/../../x',
  './a/./x',
  './/x',
  './.',
  './..',
  '.',
  '..',
  './a\nb',
  './\x1b[2J',
  './missing/x',
];

/** Names that lead elsewhere, and duplicate names. */
export const ODD_NAMES: Readonly<Record<string, Buffer>> = {
  ...Object.fromEntries(
    names.map((name, i) => [
      `name ${i}`,
      tar([ROOT, { name: './a/', kind: 'directory', mode: 0o700 }, { name, content: Buffer.from('x') }]),
    ]),
  ),
  'by the prefix': tar([ROOT, { name: 'x', prefix: './../..', content: Buffer.from('x') }]),
  twice: tar([ROOT, { name: './a' }, { name: './a' }]),
  'a directory twice': tar([
    ROOT,
    { name: './a/', kind: 'directory', mode: 0o700 },
    { name: './a/', kind: 'directory', mode: 0o700 },
  ]),
  'the root twice': tar([ROOT, ROOT]),
  'below a file': tar([ROOT, { name: './a' }, { name: './a/b' }]),
  'no root': tar([{ name: './a' }]),
  'a file for the root': tar([{ name: '.', content: Buffer.from('x') }]),
  'too deep': tar([
    ROOT,
    ...Array.from({ length: 40 }, (_, i): Piece => ({
      name: `./${'d/'.repeat(i + 1)}`,
      kind: 'directory',
      mode: 0o700,
    })),
  ]),
};

const whole = tar([ROOT, { name: './a', content: Buffer.from('one') }]);
const hidden = Buffer.from(whole);
hidden.write('behind', 1024 + 100, 'latin1');

/** Wrong sizes and missing ends. */
export const ODD_ENDS: Readonly<Record<string, Buffer>> = {
  'cut short': whole.subarray(0, 1100),
  'no end': whole.subarray(0, 1536),
  'behind a file': hidden,
  'after the end': Buffer.concat([whole, whole]),
  'a few bytes after the end': Buffer.concat([whole, Buffer.alloc(100, 'x')]),
  'zeros without end': Buffer.concat([whole, Buffer.alloc(512 * 2000)]),
};
