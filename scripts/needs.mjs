// scripts/needs.mjs: which tier a test file belongs to, and what it needs of the machine.
// A file says so in a line of its own: `// needs: docker, sandbox` (none of its tests runs without) and `// uses: curl` (some of its
// tests are skipped without). The lines of every file below test/ that it imports count as its own, so a helper that starts Docker
// says so once, for everybody who imports it.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { has, NEEDED, root } from './setup.mjs';

/** The programs that make a component. Set-up knows the packages they come from. */
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

/** `callers`: it tries the same as root and as an ordinary user. Paths are relative to the repository. */
export function describeFile(file) {
  const paths = reached(join(root, file));
  const texts = paths.map((path) => readFileSync(path, 'utf8'));
  const needs = new Set(texts.flatMap((text) => declared(text, 'needs')));
  const uses = new Set(texts.flatMap((text) => declared(text, 'uses')));
  // Everybody imports the harness, which is where they are named.
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

/** The file and whatever it imports from test/, followed to the end. */
function reached(file, found = new Set()) {
  if (found.has(file) || !existsSync(file) || relative(join(root, 'test'), file).startsWith('..')) return [];
  found.add(file);
  const imports = [...readFileSync(file, 'utf8').matchAll(/(?:from|import\(|import) ?'(\.[^']+)'/g)];
  for (const [, path] of imports) reached(join(dirname(file), path), found);
  return [...found];
}
