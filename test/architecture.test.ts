// test/architecture.test.ts: enforces the structure of the source.
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const SRC = fileURLToPath(new URL('../src', import.meta.url));

const BASE = ['protocol', 'lib'];

/** The folders in order: each may import itself and those above it; `only` narrows that. The interfaces to users come last. */
const FOLDERS: readonly { readonly name: string; readonly holds: string; readonly only?: readonly string[] }[] = [
  { name: 'protocol', holds: 'data that crosses a boundary, and the error table' },
  { name: 'lib', holds: 'general code, independent of the product' },
  { name: 'config', holds: 'layers of configuration, trust, defaults as data', only: BASE },
  { name: 'git', holds: 'the only place that starts git on the host', only: BASE },
  { name: 'store', holds: 'files of tasks, runs, events, layers, credentials', only: BASE },
  { name: 'agents', holds: 'one folder for each agent: its command line and output', only: BASE },
  { name: 'hooks', holds: 'programs that approve or refuse actions of agents', only: BASE },
  { name: 'gateway', holds: 'the only way out of a sandbox', only: BASE },
  { name: 'review', holds: 'lanes, selection, writing accepted files', only: BASE },
  { name: 'sandbox', holds: 'the interface of a backend', only: BASE },
  { name: 'sandbox/spec', holds: 'the plan of a sandbox, pure', only: BASE },
  {
    name: 'sandbox/engine',
    holds: 'Docker and Podman, driven by their command lines',
    only: [...BASE, 'sandbox', 'sandbox/spec'],
  },
  {
    name: 'sandbox/io',
    holds: 'streams, listeners and mounts that all backends share',
    only: [...BASE, 'sandbox', 'sandbox/spec'],
  },
  { name: 'sandbox/watch', holds: 'cgroups, limits and usage', only: [...BASE, 'sandbox/io'] },
  { name: 'sandbox/checks', holds: 'facts about this machine that doctor asks for' },
  {
    name: 'sandbox/native',
    holds: 'bubblewrap',
    only: [...BASE, 'sandbox', 'sandbox/spec', 'sandbox/io', 'sandbox/watch'],
  },
  {
    name: 'sandbox/container',
    holds: 'containers of Docker and Podman',
    only: [...BASE, 'sandbox', 'sandbox/spec', 'sandbox/engine', 'sandbox/io', 'sandbox/watch'],
  },
  {
    name: 'sandbox/nested',
    holds: 'the private Docker daemon of a task',
    only: [...BASE, 'sandbox', 'sandbox/spec', 'sandbox/engine', 'sandbox/io', 'sandbox/watch', 'sandbox/container'],
  },
  {
    name: 'sandbox/remote',
    holds: 'containers of a remote engine',
    only: [...BASE, 'sandbox', 'sandbox/spec', 'sandbox/engine', 'sandbox/io', 'sandbox/watch', 'sandbox/container'],
  },
  { name: 'services/presets', holds: 'built-in descriptions of services', only: BASE },
  { name: 'images/wanted', holds: 'the image of a project' },
  { name: 'nested-docker/image-cache', holds: 'the read-only registry that nested Docker pulls from', only: BASE },
  { name: 'attack/table', holds: 'attempts to break out, as data', only: [...BASE, 'sandbox/spec'] },
  { name: 'run', holds: 'host context, project, the plan of a run, supervision, its network' },
  { name: 'results', holds: 'results of a run: capture, bring out, change sets, review' },
  { name: 'queries', holds: 'read-only: list, show, find, search' },
  { name: 'network', holds: 'rules that people change, and the gateway as a program' },
  { name: 'agent-setup', holds: 'installing agents, versions, credentials, sign-in' },
  { name: 'workspace', holds: 'snapshots of commits, and workspaces on them' },
  { name: 'nested-docker', holds: 'Docker inside a task, and compose files in it' },
  { name: 'services', holds: 'databases and similar programs beside a task' },
  { name: 'exec', holds: 'ags exec and ags shell; commands over a clean workspace' },
  { name: 'setup', holds: 'layers made by setup: commands' },
  { name: 'agent-run', holds: 'start, queue, runner, turns, control server, recovery' },
  { name: 'merge', holds: 'merge, undo, resolve, checks' },
  { name: 'images', holds: 'building images, dev containers' },
  { name: 'transfer', holds: 'export and import' },
  { name: 'attack', holds: 'ags doctor --attack' },
  { name: 'housekeeping', holds: 'cleanup, leftovers, doctor' },
  { name: 'projects', holds: 'known projects, clones, tasks opened in an editor' },
  { name: 'server', holds: 'the API and live events' },
  { name: 'client', holds: 'the typed client of the API', only: ['protocol'] },
  { name: 'cli', holds: 'one thin file for each command' },
];

/** Slow packages, and the only files that may import them. */
const PACKAGES: Readonly<Record<string, RegExp>> = {
  zod: /^protocol\/(api\/|config\/(?!words)|carried-event|export|task)|^config\/|^server\//,
  ws: /^server\//,
  yaml: /^config\//,
  '@lydell/node-pty': /^(exec\/terminal|housekeeping\/doctor)\.ts$/,
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

/** The folder of a file in the table: the longest match. */
function folderOf(file: string): (typeof FOLDERS)[number] {
  const fitting = FOLDERS.filter(({ name }) => dirname(file) === name || file.startsWith(`${name}/`));
  const [found] = fitting.toSorted((a, b) => b.name.length - a.name.length);
  if (found === undefined) throw new Error(`${file} belongs to no folder of the table`);
  return found;
}

const targetOf = (file: string, path: string): string => relative(SRC, join(SRC, dirname(file), path));

test('every folder imports only folders above it in the table', () => {
  const wrong = sources.flatMap(({ file, text }) =>
    imports(text)
      .filter((path) => path.startsWith('.'))
      .flatMap((path) => {
        const [own, target] = [folderOf(file), folderOf(targetOf(file, path))];
        const above = FOLDERS.indexOf(target) < FOLDERS.indexOf(own);
        if (target === own || (above && own.only?.includes(target.name) !== false)) return [];
        return [
          `${file} is in ${own.name} (${own.holds}) and may not import ${target.name} (${target.holds}): ${path}`,
        ];
      }),
  );
  expect(wrong).toEqual([]);
});

test('no import cycles, not even for types', () => {
  const state = new Map<string, 'open' | 'done'>();
  const cycles: string[] = [];
  const visit = (file: string, way: readonly string[]): void => {
    if (state.get(file) === 'done') return;
    if (state.get(file) === 'open') return void cycles.push([...way.slice(way.indexOf(file)), file].join(' > '));
    state.set(file, 'open');
    const text = sources.find((source) => source.file === file)?.text ?? '';
    for (const path of imports(text)) if (path.startsWith('.')) visit(targetOf(file, path), [...way, file]);
    state.set(file, 'done');
  };
  for (const { file } of sources) visit(file, []);
  expect(cycles).toEqual([]);
});

// One file per command, found by the command's name; see verbs/table.ts.
const CROWDED = ['cli/verbs'];

test('no folder has too many files', () => {
  const folders = [...new Set(files.map((file) => dirname(file)))].filter((name) => !CROWDED.includes(name));
  const crowded = folders.map((name) => [name, files.filter((file) => dirname(file) === name).length] as const);
  // More hide the way through the folder: move a part of it to another one (docs/decisions/0023-small-files.md).
  expect(crowded.filter(([, count]) => count > 25)).toEqual([]);
});

test('every import of our own ends in .ts, and every package is imported only where the table allows', () => {
  const wrong = sources.flatMap(({ file, text }) =>
    imports(text).flatMap((path) => {
      if (path.startsWith('node:')) return [];
      if (path.startsWith('.')) return path.endsWith('.ts') ? [] : [`${file}: ${path}`];
      return PACKAGES[path]?.test(file) === true ? [] : [`${file} imports ${path}`];
    }),
  );
  expect(wrong).toEqual([]);
});

test('only git/ starts git, and only cli/main.ts reads process.env', () => {
  const wrong = sources.filter(
    ({ file, code }) =>
      (/run\(\[\s*'git'|spawn(Sync)?\('git'/.test(code) && !file.startsWith('git/')) ||
      (/process\.env/.test(code) && file !== 'cli/main.ts'),
  );
  expect(wrong.map(({ file }) => file)).toEqual([]);
});

test('no file is a catch-all or too long', () => {
  const names = files.filter((file) => /(^|\/)(utils?|helpers?|common|core|types|manager|misc)\.ts$/.test(file));
  const long = sources.filter(({ text }) => text.split('\n').length > 420).map(({ file }) => file);
  expect({ names, long }).toEqual({ names: [], long: [] });
});

test('every file starts with its purpose', () => {
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
  for (const entry of ['cli/main.ts', 'cli/verbs/exec.ts', 'run/readiness.ts', 'exec/has-changes.ts']) visit(entry);
  expect([...seen].filter((name) => !name.endsWith('.ts') || name.endsWith('terminal.ts'))).toEqual([]);
});

test("only an agent's own files and one list name it, so adding an agent changes nothing else", () => {
  const names = files.flatMap((file) => /^agents\/\w+\/(claude|codex|gemini|qwen|opencode)\.ts$/.exec(file)?.[1] ?? []);
  expect(names.toSorted()).toEqual(['claude', 'codex', 'gemini', 'opencode', 'qwen']);
  const known = new RegExp(`\\b(${names.join('|')})\\b`, 'i');
  // Lists of hosts and of risky files are data; examples in help texts are prose.
  const allowed = /^(agents\/|config\/(network\/presets|defaults)\.ts|review\/|cli\/|protocol\/config\/)/;
  const wrong = sources.filter(
    ({ file, code }) => !allowed.test(file) && known.test(code.replaceAll(/`[^`]*`|'[^']*'/g, '')),
  );
  expect(wrong.map(({ file }) => file)).toEqual([]);
  const inCode = sources.filter(
    ({ file, code }) => file.startsWith('cli/') && known.test(code.replaceAll(/`[^`]*`|'[^']*'|"[^"]*"/g, '')),
  );
  expect(inCode.map(({ file }) => file)).toEqual([]);
});
