import { describe, expect, test } from 'vitest';
import { suggestChecks, suggestCommands, suggestSetup, type RootFiles } from '../../src/config/starter/commands.ts';
import { servicesIn } from '../../src/config/starter/services.ts';
import { planStarter, starterText, type Machine } from '../../src/config/starter/starter.ts';
import { createFixture } from './config-fixture.ts';

const files = (texts: Record<string, string>): RootFiles => ({
  names: new Set(Object.keys(texts)),
  text: (name) => texts[name] ?? '',
});
const EVERYTHING: Machine = { programs: () => [], preset: () => [] };

const dependencies = '{"dependencies":{"a":"1"},"scripts":{"test":"x","typecheck":"y","evil":"z"}}';

describe('suggestions', () => {
  test('parts of a project get commands in their own directories, if the root does not manage them', () => {
    const part = (name: string, texts: Record<string, string>) => ({ name, files: files(texts) });
    const parts = [
      part('api', { 'go.mod': '', Makefile: 'test:\n' }),
      part('ml', { 'requirements.txt': '', 'pytest.ini': '' }),
      part('web', { 'package.json': dependencies, 'package-lock.json': '' }),
      part('x; touch y', { 'go.mod': '' }),
      part('-rf', { 'go.mod': '' }),
      part('docs', { 'index.md': '' }),
    ];
    const python = ['python3 -m venv .venv', '.venv/bin/pip install -r requirements.txt'];
    expect(suggestCommands({ ...files({}), parts })).toEqual({
      setup: [...python.map((line) => `(cd ml && ${line})`), '(cd web && npm ci)'],
      checks: [
        '(cd api && go test ./...)',
        '(cd ml && .venv/bin/python -m pytest)',
        '(cd web && npm test)',
        '(cd web && npm run typecheck)',
      ],
    });
    const root = files({ 'package.json': '{"workspaces":["web"]}', 'package-lock.json': '', 'go.mod': '' });
    expect(suggestCommands({ ...root, parts })).toEqual({
      setup: ['npm ci', ...python.map((line) => `(cd ml && ${line})`)],
      checks: ['npm test --workspaces --if-present', 'go test ./...', '(cd ml && .venv/bin/python -m pytest)'],
    });
    const programs = (names: readonly string[]): readonly string[] => names;
    const missing = planStarter({ ...files({}), parts }, { ...EVERYTHING, programs });
    expect(missing.checks.map((one) => one.missing)).toEqual([['go'], [], ['npm'], ['npm']]);
  });

  test.each([
    [{ 'package.json': dependencies, 'package-lock.json': '' }, ['npm ci'], ['npm test', 'npm run typecheck']],
    [{ 'package.json': dependencies }, ['npm install'], ['npm test', 'npm run typecheck']],
    [{ 'package.json': '{}' }, [], []],
    [{ 'package.json': 'not JSON', 'yarn.lock': '' }, ['yarn install --frozen-lockfile'], []],
    [{ 'package.json': '[]', 'yarn.lock': '', '.yarnrc.yml': '' }, ['yarn install --immutable'], []],
    [{ 'pnpm-lock.yaml': '' }, ['pnpm install --frozen-lockfile'], []],
    [{ 'uv.lock': '', 'pyproject.toml': '' }, ['uv sync --frozen'], ['uv run pytest']],
    [{ 'pyproject.toml': '[project]\n' }, ['python3 -m venv .venv', '.venv/bin/pip install -e .'], ['pytest']],
    [
      { 'requirements.txt': '', 'requirements-dev.txt': '' },
      ['python3 -m venv .venv', '.venv/bin/pip install -r requirements.txt -r requirements-dev.txt'],
      [],
    ],
    [{ 'go.mod': '' }, [], ['go test ./...']],
    [{ 'Cargo.toml': '', 'Cargo.lock': '' }, ['cargo build --locked'], ['cargo test']],
    [{ 'composer.json': '{"scripts":{"test":"x"}}' }, ['composer install --no-interaction'], ['composer test']],
    [{ 'pom.xml': '', mvnw: '' }, [], ['./mvnw -q test']],
    [{ 'build.gradle.kts': '', gradlew: '' }, [], ['./gradlew test']],
    [{ Makefile: 'all:\n\techo\ntest: all\n' }, [], ['make test']],
  ])('%j', (texts, setup, checks) => {
    expect({ setup: suggestSetup(files(texts)), checks: suggestChecks(files(texts)) }).toEqual({ setup, checks });
  });

  test('services of a compose file that ags knows, by their own image alone', () => {
    const compose = [
      'x-anchors: &a { image: nats }',
      'services: # all of them',
      '    db:',
      '        environment: ',
      '            image: redis',
      '        image: "docker.io/library/postgres:16-alpine@sha256:00"',
      '    web:',
      '        build: .',
      '        labels:',
      '            image: redis',
      "    'bad name: x':",
      '        image: redis',
      '    Upper:',
      '        image: redis',
      '    cache: # fast',
      '        image: valkey # 8',
      '    store:',
      '        image: mongo:latest',
      'volumes:',
      '    data:',
      '        image: nats',
    ].join('\n');
    expect(servicesIn(compose)).toEqual([
      { name: 'db', preset: 'postgres', version: '16' },
      { name: 'cache', preset: 'valkey', version: null },
      { name: 'store', preset: 'mongodb', version: null },
    ]);
    expect(servicesIn(`services:\n${'  a:\n    image: redis\n'.repeat(10_000)}`)).toHaveLength(1);
    expect(servicesIn(`services:\n${' '.repeat(100_000)}image: redis\n${'{'.repeat(100_000)}`)).toEqual([]);
  });
});

test('the file loads, and what this machine has no program for is commented out', async () => {
  using at = createFixture();
  const texts = {
    'package.json': '{"scripts":{"test":"x\\n  - y","lint":"#"}}',
    'package-lock.json': '',
    Gemfile: '',
    'compose.yaml': 'services:\n  db:\n    image: postgres:16\n  queue:\n    image: nats:2\n',
    '.devcontainer': '',
  };
  const machine: Machine = {
    programs: (names) => names.filter((name) => name === 'bundle'),
    preset: (name, version) => (name === 'nats' || version === '16' ? [name] : []),
  };
  const text = starterText(planStarter(files(texts), machine));
  expect(text.split('\n').slice(1)).toEqual([
    '# Runs once; every task starts with the result.',
    'setup:',
    '  - npm ci',
    '  # - bundle config set --local path vendor/bundle   # not on this machine: bundle',
    '  # - bundle install   # not on this machine: bundle',
    '# For ags check; merge.check: true requires them.',
    'checks:',
    '  - npm test',
    '  - npm run lint',
    '# Beside each task, with data of its own.',
    'services:',
    '  db: postgres   # the version that is here; 16 is not',
    '  # queue: nats   # not on this machine: nats',
    '# compose: true   # start compose.yaml itself, in a private Docker daemon',
    '# image: devcontainer   # the programs of your dev container, with Docker or Podman',
    '',
  ]);
  at.project(text);
  expect(await at.asks()).toEqual([]);
  expect(await at.load()).toMatchObject({
    setup: { run: ['npm ci'] },
    checks: { run: [{ run: 'npm test' }, { run: 'npm run lint' }] },
    services: [{ name: 'db', preset: 'postgres' }],
  });
  // What a comment hides is valid, too.
  at.project(text.replaceAll(/^( *)# (?=- |queue)/gm, '$1'));
  expect((await at.load()).services).toHaveLength(2);
  for (const [some, wholly] of [
    [{}, EVERYTHING],
    [texts, { programs: (names: readonly string[]) => names, preset: () => ['x'] }],
  ] as const) {
    at.project(starterText(planStarter(files(some), wholly)));
    expect(await at.load()).toMatchObject({ setup: { run: [] }, checks: { run: [] }, services: [] });
  }
});
