// test/architecture.test.ts: the shape of the source, held by a table.
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { expect, test } from 'vitest';

const SRC = new URL('../src', import.meta.url).pathname;

/** What each folder may import besides itself. A path tells what a file may use. */
const ALLOWED: Readonly<Record<string, readonly string[]>> = {
  protocol: [],
  lib: ['protocol'],
  config: ['protocol', 'lib'],
  git: ['protocol', 'lib'],
  sandbox: ['protocol', 'lib'],
  gateway: ['protocol', 'lib'],
  review: ['protocol', 'lib'],
  store: ['protocol', 'lib'],
  agents: ['protocol', 'lib'],
  hooks: ['protocol', 'lib'],
  registry: ['protocol', 'lib'],
  services: ['protocol', 'lib'],
  attacks: ['protocol', 'lib', 'sandbox'],
  tasks: [
    'protocol',
    'lib',
    'config',
    'git',
    'sandbox',
    'gateway',
    'review',
    'store',
    'agents',
    'hooks',
    'registry',
    'services',
    'attacks',
  ],
  server: ['protocol', 'lib', 'store', 'tasks'],
  client: ['protocol'],
  cli: [
    'protocol',
    'lib',
    'config',
    'git',
    'sandbox',
    'gateway',
    'review',
    'store',
    'agents',
    'hooks',
    'services',
    'attacks',
    'tasks',
    'server',
  ],
};

/** Packages and the only files that may import them: what is slow to load must be loaded on purpose. */
const PACKAGES: Readonly<Record<string, RegExp>> = {
  zod: /^protocol\/(api(-checks|-id|-review|-services)?|carried-event|export|config(-checks|-compose|-docker|-forms|-hooks|-services)?|task)\.ts$|^config\/|^server\//,
  ws: /^server\//,
  yaml: /^config\//,
  '@lydell/node-pty': /^tasks\/(terminal|doctor)\.ts$/,
};

const files = readdirSync(SRC, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.ts'));
const sources = files.map((file) => ({
  file,
  text: readFileSync(join(SRC, file), 'utf8'),
  code: stripComments(readFileSync(join(SRC, file), 'utf8')),
}));

function stripComments(text: string): string {
  return text.replaceAll(/^\s*(\/\/|\*|\/\*).*$/gm, '');
}

function imports(text: string): string[] {
  return [...text.matchAll(/(?:^(?:import|export) [^;']*from|import\()\s*'([^']+)'/gm)].map((match) => match[1] ?? '');
}

test('every folder imports only what the table allows', () => {
  const wrong = sources.flatMap(({ file, text }) =>
    imports(text)
      .filter((path) => path.startsWith('.'))
      .flatMap((path) => {
        const target = relative(SRC, join(SRC, dirname(file), path)).split('/')[0] ?? '';
        const own = file.split('/')[0] ?? '';
        return target === own || ALLOWED[own]?.includes(target) === true ? [] : [`${file} imports ${path}`];
      }),
  );
  expect(wrong).toEqual([]);
});

test('every import of our own ends in .ts and every package has its place', () => {
  const wrong = sources.flatMap(({ file, text }) =>
    imports(text).flatMap((path) => {
      if (path.startsWith('node:')) return [];
      if (path.startsWith('.')) return path.endsWith('.ts') ? [] : [`${file}: ${path}`];
      return PACKAGES[path]?.test(file) === true ? [] : [`${file} imports ${path}`];
    }),
  );
  expect(wrong).toEqual([]);
});

test('git is started in git/ only, and process.env is read in cli/main.ts only', () => {
  const wrong = sources.filter(
    ({ file, code }) =>
      (/run\(\[\s*'git'|spawn(Sync)?\('git'/.test(code) && !file.startsWith('git/')) ||
      (/process\.env/.test(code) && file !== 'cli/main.ts'),
  );
  expect(wrong.map(({ file }) => file)).toEqual([]);
});

test('no file is a catch-all, and none is too long to read', () => {
  const names = files.filter((file) => /(^|\/)(utils?|helpers?|common|core|types|manager|misc)\.ts$/.test(file));
  const long = sources.filter(({ text }) => text.split('\n').length > 420).map(({ file }) => file);
  expect({ names, long }).toEqual({ names: [], long: [] });
});

test('every file opens with what it is for', () => {
  expect(sources.filter(({ text }) => !text.startsWith('// ')).map(({ file }) => file)).toEqual([]);
});

test('loading the hot path loads neither zod, nor yaml, nor the terminal', () => {
  const seen = new Set<string>();
  const visit = (file: string): void => {
    if (seen.has(file)) return;
    seen.add(file);
    const text = readFileSync(join(SRC, file), 'utf8');
    for (const match of text.matchAll(/^(?:import|export) (?!type )[^;]*?from '([^']+)';/gms)) {
      const path = match[1] ?? '';
      if (path.startsWith('.')) visit(relative(SRC, join(SRC, dirname(file), path)));
      else if (!path.startsWith('node:')) seen.add(path);
    }
  };
  for (const entry of ['cli/main.ts', 'cli/verbs/exec.ts', 'tasks/ready.ts', 'tasks/changed.ts']) visit(entry);
  expect([...seen].filter((name) => !name.endsWith('.ts') || name.endsWith('terminal.ts'))).toEqual([]);
});

test('an agent is known by its name in its own files and one list, so that adding one touches nothing else', () => {
  const names = files.flatMap((file) => /^agents\/(claude|codex|gemini|qwen|opencode)\.ts$/.exec(file)?.[1] ?? []);
  expect(names.toSorted()).toEqual(['claude', 'codex', 'gemini', 'opencode', 'qwen']);
  const known = new RegExp(`\\b(${names.join('|')})\\b`, 'i');
  // Lists of hosts and of files that run code are data about the world; examples in help texts are words.
  const allowed = /^(agents\/|config\/(presets|defaults)\.ts|review\/|cli\/|protocol\/config\.ts)/;
  const wrong = sources.filter(
    ({ file, code }) => !allowed.test(file) && known.test(code.replaceAll(/`[^`]*`|'[^']*'/g, '')),
  );
  expect(wrong.map(({ file }) => file)).toEqual([]);
  const inCode = sources.filter(
    ({ file, code }) => file.startsWith('cli/') && known.test(code.replaceAll(/`[^`]*`|'[^']*'|"[^"]*"/g, '')),
  );
  expect(inCode.map(({ file }) => file)).toEqual([]);
});
