// config/starter/commands.ts: suggests set-up commands and checks from the files of a project. Pure.
// Invariant: a suggestion is one of the texts below, or one in a directory with a plain name. Nothing that a project's file says becomes
// a part of it.

/** The names at the root of a project, and the text of those that were read; '' for others. */
export interface RootFiles {
  readonly names: ReadonlySet<string>;
  text(name: string): string;
  /** The directories of a project with several parts, by their names. */
  readonly parts?: readonly { readonly name: string; readonly files: RootFiles }[];
}

/** Files that belong together: of a part, those are left out that the root has as well. */
const FAMILIES = [
  'package.json package-lock.json npm-shrinkwrap.json pnpm-lock.yaml yarn.lock bun.lock bun.lockb pnpm-workspace.yaml',
  'pyproject.toml uv.lock poetry.lock pdm.lock Pipfile.lock requirements.txt requirements-dev.txt pytest.ini tox.ini',
  'Cargo.toml Cargo.lock',
  'go.mod go.work',
  'Gemfile Gemfile.lock Rakefile',
  'composer.json phpunit.xml phpunit.xml.dist',
  'pom.xml build.gradle build.gradle.kts settings.gradle settings.gradle.kts',
].map((family) => family.split(' '));
const MOST_PARTS = 6;

/** The commands for the root, and for its parts in their own directories. */
export function suggestCommands(files: RootFiles): { setup: string[]; checks: string[] } {
  const managed = FAMILIES.filter((family) => family.some((name) => files.names.has(name))).flat();
  const parts = (files.parts ?? [])
    .filter(({ name }) => PART.test(name))
    .flatMap(({ name, files: own }) => {
      const names = new Set([...own.names].filter((one) => !managed.includes(one) && one !== 'Makefile'));
      const { setup, checks } = commandsOf({ names, text: (one) => (names.has(one) ? own.text(one) : '') });
      const there = (command: string): string => `(cd ${name} && ${command})`;
      return setup.length + checks.length === 0 ? [] : [{ setup: setup.map(there), checks: checks.map(there) }];
    })
    .slice(0, MOST_PARTS);
  return {
    setup: [files, ...parts].flatMap((part) => ('names' in part ? commandsOf(part).setup : part.setup)),
    checks: [files, ...parts].flatMap((part) => ('names' in part ? commandsOf(part).checks : part.checks)),
  };
}

/** A name that is one plain word for a shell. */
const PART = /^[A-Za-z0-9_][\w.-]{0,63}$/;

function commandsOf(files: RootFiles): { setup: string[]; checks: string[] } {
  const setup = suggestSetup(files);
  const own = setup.some((command) => command.startsWith('.venv/bin/pip'));
  return {
    setup,
    checks: suggestChecks(files).map((check) => (own && check === 'pytest' ? '.venv/bin/python -m pytest' : check)),
  };
}

/** The files whose text counts. */
export const READ: readonly string[] = ['package.json', 'composer.json', 'pyproject.toml', 'Gemfile', 'Makefile'];

export function suggestSetup(files: RootFiles): string[] {
  return [
    ...javascriptSetup(files),
    ...pythonSetup(files),
    ...(files.names.has('Cargo.toml') ? [`cargo build${files.names.has('Cargo.lock') ? ' --locked' : ''}`] : []),
    ...(files.names.has('Gemfile') ? ['bundle config set --local path vendor/bundle', 'bundle install'] : []),
    ...(files.names.has('composer.json') ? ['composer install --no-interaction'] : []),
  ];
}

export function suggestChecks(files: RootFiles): string[] {
  const { names } = files;
  const has = (...any: readonly string[]): boolean => any.some((name) => names.has(name));
  const found = scriptChecks(files);
  if (has('Cargo.toml')) found.push('cargo test');
  if (has('go.mod')) found.push('go test ./...');
  if (has('pyproject.toml', 'pytest.ini', 'tox.ini')) found.push(pytest(names));
  if (has('Gemfile')) {
    if (has('spec')) found.push('bundle exec rspec');
    else if (has('Rakefile')) found.push('bundle exec rake test');
  }
  if (has('composer.json') && Object.hasOwn(scriptsIn(files.text('composer.json')), 'test'))
    found.push('composer test');
  else if (has('phpunit.xml', 'phpunit.xml.dist')) found.push('vendor/bin/phpunit');
  if (has('pom.xml')) found.push(`${has('mvnw') ? './mvnw' : 'mvn'} -q test`);
  else if (has('build.gradle', 'build.gradle.kts')) found.push(`${has('gradlew') ? './gradlew' : 'gradle'} test`);
  if (/^test:/m.test(files.text('Makefile'))) found.push('make test');
  return found;
}

const SCRIPTS = ['test', 'lint', 'typecheck'] as const;
const MANAGERS = [
  ['pnpm-lock.yaml', 'pnpm'],
  ['yarn.lock', 'yarn'],
  ['bun.lock', 'bun run'],
  ['bun.lockb', 'bun run'],
] as const;

function scriptChecks({ names, text }: RootFiles): string[] {
  const manifest = objectIn(text('package.json'));
  const scripts = scriptsIn(text('package.json'));
  if (!Object.hasOwn(scripts, 'test')) {
    if (names.has('pnpm-workspace.yaml')) return ['pnpm -r test'];
    if (names.has('package-lock.json') && Object.hasOwn(manifest, 'workspaces'))
      return ['npm test --workspaces --if-present'];
  }
  const manager = MANAGERS.find(([lock]) => names.has(lock))?.[1] ?? 'npm run';
  return SCRIPTS.filter((name) => Object.hasOwn(scripts, name)).map((name) =>
    name === 'test' && manager === 'npm run' ? 'npm test' : `${manager} ${name}`,
  );
}

function javascriptSetup({ names, text }: RootFiles): string[] {
  if (names.has('package-lock.json') || names.has('npm-shrinkwrap.json')) return ['npm ci'];
  if (names.has('pnpm-lock.yaml')) return ['pnpm install --frozen-lockfile'];
  if (names.has('yarn.lock')) return [`yarn install --${names.has('.yarnrc.yml') ? 'immutable' : 'frozen-lockfile'}`];
  if (names.has('bun.lock') || names.has('bun.lockb')) return ['bun install --frozen-lockfile'];
  const manifest = objectIn(text('package.json'));
  const needs = ['dependencies', 'devDependencies'].some((key) => Object.keys(objectAt(manifest, key)).length > 0);
  return needs ? ['npm install'] : [];
}

/** Environments lie in the project, because the home inside does not stay. */
function pythonSetup({ names, text }: RootFiles): string[] {
  if (names.has('uv.lock')) return ['uv sync --frozen'];
  if (names.has('poetry.lock')) return ['POETRY_VIRTUALENVS_IN_PROJECT=1 poetry install --no-interaction'];
  if (names.has('pdm.lock')) return ['pdm sync'];
  if (names.has('Pipfile.lock')) return ['PIPENV_VENV_IN_PROJECT=1 pipenv sync --dev'];
  const lists = ['requirements.txt', 'requirements-dev.txt'].filter((name) => names.has(name));
  const itself = /^\[project\]/m.test(text('pyproject.toml')) && lists.length === 0 ? ['-e .'] : [];
  const wanted = [...lists.map((name) => `-r ${name}`), ...itself];
  return wanted.length === 0 ? [] : ['python3 -m venv .venv', `.venv/bin/pip install ${wanted.join(' ')}`];
}

function pytest(names: ReadonlySet<string>): string {
  if (names.has('uv.lock')) return 'uv run pytest';
  if (names.has('poetry.lock')) return 'POETRY_VIRTUALENVS_IN_PROJECT=1 poetry run pytest';
  return 'pytest';
}

function scriptsIn(text: string): Record<string, unknown> {
  return objectAt(objectIn(text), 'scripts');
}

function objectIn(text: string): Record<string, unknown> {
  try {
    return objectAt({ whole: JSON.parse(text) as unknown }, 'whole');
  } catch {
    return {};
  }
}

function objectAt(value: Record<string, unknown>, key: string): Record<string, unknown> {
  const inner = Object.hasOwn(value, key) ? value[key] : null;
  return typeof inner === 'object' && inner !== null && !Array.isArray(inner) ? (inner as Record<string, unknown>) : {};
}
