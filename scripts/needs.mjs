// scripts/needs.mjs: the tier of a test file and its needs of the machine. A file declares them in separate lines: `// needs: docker, sandbox`
// (without it none of its tests run) and `// uses: curl` (without it some are skipped). Lines of imported files below test/ count too, so a
// helper that starts Docker declares it once.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { has, NEEDED, root } from './setup.mjs';

/** The programs of each component. Set-up knows their packages. */
const PROGRAMS = {
  sandbox: NEEDED,
  'low-ports': [],
  docker: ['dockerd'],
  compose: ['docker-compose'],
  podman: ['podman', 'newuidmap'],
  registry: ['docker-registry', 'busybox'],
  chromium: ['chromium'],
  java: ['javac', 'keytool'],
  postgres: ['psql'],
  mariadb: ['mariadbd'],
  redis: ['redis-server'],
  nats: ['nats-server'],
  rabbitmq: ['rabbitmq-server'],
  memcached: ['memcached'],
  ssh: ['sshd'],
  ...Object.fromEntries(['busybox', 'curl', 'gcc', 'openssl', 'python3', 'tmux', 'wget'].map((name) => [name, [name]])),
};

/** core: `npm test`; full: `npm run test:all`; proof: `npm run test:proof`. */
export function tierOf(file) {
  return /\.(full|proof)\.test\.ts$/.exec(file)?.[1] ?? 'core';
}

export function allTestFiles() {
  return readdirSync(join(root, 'test'), { recursive: true })
    .filter((name) => name.endsWith('.test.ts'))
    .map((name) => join('test', name))
    .toSorted();
}

/** `callers`: runs as root and as an ordinary user. Paths are relative to the repository. */
export function describeFile(file) {
  const paths = reached(join(root, file));
  const texts = paths.map((path) => readFileSync(path, 'utf8'));
  const needs = new Set(texts.flatMap((text) => declared(text, 'needs')));
  const uses = new Set(texts.flatMap((text) => declared(text, 'uses')));
  // Every file imports the harness, which defines the names.
  const callers = texts.some(
    (text, i) => !paths[i].endsWith('test/harness.ts') && /\bCALLERS\b|\bALSO_AS_USER\b/.test(text),
  );
  return { file, tier: tierOf(file), needs: [...needs], uses: [...uses].filter((name) => !needs.has(name)), callers };
}

/** The names after `// needs:` or `// uses:`. */
export function declared(text, word) {
  const names = [...text.matchAll(new RegExp(`^// ${word}: (.+)$`, 'gm'))].flatMap(([, list]) => list.split(/,\s*/));
  const unknown = names.filter((name) => !(name in PROGRAMS));
  if (unknown.length > 0) throw new Error(`scripts/needs.mjs does not know ${unknown.join(', ')}`);
  return names;
}

export const programsOf = (names) => names.flatMap((name) => PROGRAMS[name]);

export const isInstalled = (name) => PROGRAMS[name].every((program) => has(program));

/** The file and its imports from test/, recursively. */
function reached(file, found = new Set()) {
  if (found.has(file) || !existsSync(file) || relative(join(root, 'test'), file).startsWith('..')) return [];
  found.add(file);
  const imports = [...readFileSync(file, 'utf8').matchAll(/(?:from|import\(|import) ?'(\.[^']+)'/g)];
  for (const [, path] of imports) reached(join(dirname(file), path), found);
  return [...found];
}
