// config/file/template.ts: the file that `ags init --full` writes: every key with its meaning and its built-in value or an example.
// Invariant: everything in it is commented out. Explanations begin with "# ", keys with "#" directly before them, so removing
// this one character from a key and from its section enables it.
import { stringify } from 'yaml';
import { listKeys, type KeyDoc } from './keys.ts';

export function configTemplate(): string {
  const keys = listKeys().filter(({ path }) => !path.includes('[]'));
  const sections = keys.filter(({ path }) => !path.includes('.')).map((key) => sectionOf(key, keys));
  return `${[HEAD.join('\n'), ...sections].join('\n\n')}\n`;
}

const HEAD = [
  '# What sandboxes of this project may see and use. Every key is optional. Everything is commented out;',
  '# uncomment what you need: remove the # in front of a key and of its section.',
  '# "Asks": the key lets a sandbox see or use more, so each user of this project must approve it with `ags trust`.',
  '# Values in force, and where each comes from: ags config',
];

function sectionOf(key: KeyDoc, keys: readonly KeyDoc[], indent = '', above?: KeyDoc): string {
  const [words, value] = [`#${indent}${indent === '' ? ' ' : '# '}`, `#${indent}`];
  if (key.kind !== 'section') return [...explain(key, words, above), ...assignment(key, value)].join('\n');
  const inner = keys.filter(({ path }) => parentOf(path) === key.path);
  const body = inner.map((k) => sectionOf(k, keys, `${indent}  `, key));
  return [...explain(key, words, above), `${value}${nameOf(key)}:`, ...body].join('\n');
}

function explain(key: KeyDoc, prefix: string, above: KeyDoc | undefined): string[] {
  const note =
    key.kind !== 'section' && key.trust === 'always'
      ? ' Asks.'
      : key.trust === 'above' && above?.trust !== 'above'
        ? ' Asks if above your own.'
        : key.trust === 'outside'
          ? ' Asks unless inside.'
          : '';
  // The documentation is not part of the project.
  const words = key.description.replaceAll(/ ?\(\[[^\]]*\]\([^)]*\)\)/g, '');
  return wrap(`${words}${note}`, 110 - prefix.length).map((line) => prefix + line);
}

function nameOf({ path }: KeyDoc): string {
  return path.slice(path.lastIndexOf('.') + 1);
}

function parentOf(path: string): string {
  return path.slice(0, Math.max(0, path.lastIndexOf('.')));
}

function assignment(key: KeyDoc, prefix: string): string[] {
  const name = nameOf(key);
  if (key.builtIn !== undefined) return [`${prefix}${name}: ${key.builtIn}`];
  return stringify({ [name]: key.example }, { lineWidth: 0 })
    .trimEnd()
    .split('\n')
    .map((line) => prefix + line);
}

function wrap(text: string, width: number): string[] {
  const lines = [''];
  for (const word of text.split(' ')) {
    const line = lines.at(-1) ?? '';
    if (line !== '' && line.length + 1 + word.length > width) lines.push(word);
    else lines[lines.length - 1] = line === '' ? word : `${line} ${word}`;
  }
  return lines;
}
