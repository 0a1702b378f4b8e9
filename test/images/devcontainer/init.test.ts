// test/images/devcontainer/init.test.ts: the files that `ags devcontainer init` writes, and its refusals.
import { cpSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { createMachine, giveTo, type Machine } from '../../harness.ts';

const FILES = ['.env.example', 'Dockerfile', 'allow-list.txt', 'devcontainer.json', 'docker-compose.yaml'];

interface Compose {
  readonly services: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  readonly volumes: Readonly<Record<string, unknown>>;
  readonly networks: Readonly<Record<string, unknown>>;
}

const read = (machine: Machine, name: string): string =>
  readFileSync(join(machine.project, '.devcontainer', name), 'utf8');
const markOf = (machine: Machine): string =>
  /^  holder-([0-9a-f]{12}):$/m.exec(read(machine, 'docker-compose.yaml'))?.[1] ?? 'none';
/** The compose file without the mark of the project. */
const compose = (machine: Machine): Compose =>
  parse(read(machine, 'docker-compose.yaml').replaceAll(`-${markOf(machine)}`, ''), { merge: true }) as Compose;

test('the files contain no path of this machine, and only the gateway has a network', async () => {
  using machine = createMachine('user', { files: { 'go.mod': 'module x\n', 'a.txt': 'a\n' } });
  const { code, stdout, stderr } = await machine.ags(['devcontainer', 'init', '--service', 'postgres,redis']);
  expect([code, stdout.trim().split('\n').toSorted()], stderr).toEqual([
    0,
    FILES.map((name) => `.devcontainer/${name}`),
  ]);
  for (const name of FILES) expect(read(machine, name)).not.toContain(machine.root);
  expect(read(machine, 'devcontainer.json')).toContain('golang.go');
  expect(read(machine, 'allow-list.txt')).toContain('\n# built-in npm\n*.npmjs.org\n');
  const { services } = compose(machine);
  const facts = Object.entries(services).map(([name, service]) => [
    name,
    service['network_mode'] ?? service['networks'],
    service['read_only'],
    service['cap_drop'],
    service['security_opt'],
    service['user'],
  ]);
  const locked = [true, ['ALL'], ['no-new-privileges:true']];
  expect(facts).toEqual([
    ['holder', 'none', ...locked, 'gateway'],
    ['gateway', ['out'], ...locked, 'gateway'],
    ['dev', 'service:holder', ...locked, 'dev'],
    ['postgres', 'service:holder', ...locked, 'postgres'],
    ['redis', 'service:holder', ...locked, 'redis'],
  ]);
  for (const service of Object.values(services)) {
    expect([service['ports'], service['privileged'], service['devices']]).toEqual([undefined, undefined, undefined]);
    expect(service['pids_limit']).toBeGreaterThan(0);
    expect(service['mem_limit']).toBeDefined();
  }
  const volumes = (name: string): string[] => services[name]?.['volumes'] as string[];
  expect(volumes('dev').filter((volume) => volume.includes('sock') || volume.startsWith('door'))).toEqual([]);
});

test('no other project shares its volumes or containers, even with the same name or files; writing again keeps them', async () => {
  using machine = createMachine('user', { name: 'code/app' });
  const init = async (project: string): Promise<string[]> => {
    const words = ['devcontainer', 'init', '--service', 'redis', '--docker', '--force'];
    const { code, stderr } = await machine.ags(words, { cwd: project });
    expect(code, stderr).toBe(0);
    const written = (name: string): string => readFileSync(join(project, '.devcontainer', name), 'utf8');
    const { services, volumes, networks } = parse(written('docker-compose.yaml'), { merge: true }) as Compose;
    expect(written('devcontainer.json')).toContain(`"service": "${Object.keys(services)[2]}"`);
    return [services, volumes, networks].flatMap((part) => Object.keys(part));
  };
  const copy = (from: string, to: string): void => {
    cpSync(from, to, { recursive: true });
    giveTo(to, machine.uid);
  };
  const mine = await init(machine.project);
  expect(mine.map((name) => name.replace(`-${markOf(machine)}`, '*')).join(' ')).toBe(
    'holder* gateway* dev* redis* docker* door* log* home* redis-data* docker-data* out*',
  );
  // Tools name a project after its directory or a variable in .env, and find volumes and containers by that name.
  const clone = join(machine.root, 'clones/app');
  mkdirSync(join(machine.root, 'clones'));
  copy(machine.project, clone);
  writeFileSync(join(clone, '.env'), 'COMPOSE_PROJECT_NAME=app_devcontainer\n');
  expect((await init(clone)).filter((name) => mine.includes(name))).toEqual([]);
  expect(await init(machine.project)).toEqual(mine);
  // Another directory at the same path is another project.
  renameSync(machine.project, `${machine.project}-before`);
  copy(`${machine.project}-before`, machine.project);
  expect((await init(machine.project)).filter((name) => mine.includes(name))).toEqual([]);
});

test('init warns that a project without .git cannot have it read-only', async () => {
  using machine = createMachine('user');
  rmSync(join(machine.project, '.git'), { recursive: true });
  const { code, stderr } = await machine.ags(['devcontainer', 'init']);
  expect([code, stderr.includes('left out: A read-only .git')], stderr).toEqual([0, true]);
  expect(read(machine, 'docker-compose.yaml')).not.toContain('.git:');
});

test('.git is read-only inside, even if it is the file of a worktree', async () => {
  using machine = createMachine('user');
  const directory = join(machine.root, 'repository');
  machine.git('config', 'core.worktree', machine.project);
  renameSync(join(machine.project, '.git'), directory);
  machine.write('.git', `gitdir: ${directory}\n`);
  const { code, stderr } = await machine.ags(['devcontainer', 'init']);
  expect(code, stderr).toBe(0);
  expect(compose(machine).services['dev']?.['volumes']).toContain(
    `../.git:/workspaces/${basename(machine.project)}/.git:ro`,
  );
});

test('existing files are replaced only with --force, and never through a link', async () => {
  using machine = createMachine('user');
  const dir = join(machine.project, '.devcontainer');
  machine.write('.devcontainer/devcontainer.json', '{"mine":true}');
  const refused = await machine.ags(['devcontainer', 'init']);
  expect([refused.code, refused.stderr.includes('ags devcontainer init --force')]).toEqual([2, true]);
  expect([readdirSync(dir), read(machine, 'devcontainer.json')]).toEqual([['devcontainer.json'], '{"mine":true}']);
  expect((await machine.ags(['devcontainer', 'init', '--force'])).code).toBe(0);
  expect(read(machine, 'devcontainer.json')).toContain('dockerComposeFile');

  using linked = createMachine('user');
  mkdirSync(join(linked.root, 'elsewhere'), { mode: 0o777 });
  symlinkSync(join(linked.root, 'elsewhere'), join(linked.project, '.devcontainer'));
  expect((await linked.ags(['devcontainer', 'init', '--force'])).code).toBe(2);
  expect(readdirSync(join(linked.root, 'elsewhere'))).toEqual([]);
});

test('rules and services of the project are included, and unsupported ones are listed', async () => {
  using machine = createMachine('user');
  writeFileSync(
    join(machine.project, 'ags.yaml'),
    `network:
  defaults: false
  allow: [one.test, "GET two.test/v1/*"]
  deny: [three.test:8443]
  addresses: [10.1.0.0/16]
services:
  db: { preset: postgres, database: shop, password: 'a$b"c', port: 5433, seed: [db/schema.sql] }
  mail: { run: "mail --port 1025", ports: [1025] }
`,
  );
  const untrusted = await machine.ags(['devcontainer', 'init']);
  expect([untrusted.code, untrusted.stderr.includes('ags trust')]).toEqual([2, true]);
  expect(machine.has('.devcontainer')).toBe(false);
  expect((await machine.ags(['trust', '--yes'])).code).toBe(0);
  const { code, stderr } = await machine.ags(['devcontainer', 'init']);
  expect(code, stderr).toBe(0);
  for (const words of ['GET two.test/v1/*', 'The service mail', 'The seeds of db']) expect(stderr).toContain(words);
  expect(read(machine, 'allow-list.txt').split('\n').slice(3)).toEqual([
    '# ags.yaml',
    'one.test',
    '! three.test:8443',
    '',
  ]);
  expect(read(machine, 'gateway.yaml')).toContain('- "10.1.0.0/16"');
  const { services } = compose(machine);
  expect(Object.keys(services)).toEqual(['holder', 'gateway', 'dev', 'db']);
  expect(services['db']?.['environment']).toMatchObject({
    POSTGRES_PASSWORD: 'a$$b"c',
    POSTGRES_DB: 'shop',
    PGPORT: '5433',
  });
  expect(services['dev']?.['environment']).toMatchObject({ DATABASE_URL: 'postgres://app:a%24b%22c@db:5433/shop' });
  expect(services['gateway']?.['command']).toContain('/etc/ags/gateway.yaml');
});

test('nested Docker is included only with --docker, and only its service gets capabilities', async () => {
  using machine = createMachine('user', { files: { 'ags.yaml': 'services: { cache: redis }\n' } });
  const without = await machine.ags(['devcontainer', 'init']);
  expect(without.code, without.stderr).toBe(0);
  expect(read(machine, 'docker-compose.yaml') + read(machine, 'Dockerfile')).not.toMatch(
    /docker-data|dockerd|DOCKER_HOST/,
  );
  const done = await machine.ags(['devcontainer', 'init', '--docker', '--force']);
  expect([done.code, done.stderr.includes('It needs Docker Compose 2')], done.stderr).toEqual([0, true]);
  const { services } = compose(machine);
  expect(services['docker']).toMatchObject({
    network_mode: 'service:holder',
    read_only: true,
    cap_drop: ['ALL'],
    cap_add: ['SETUID', 'SETGID'],
    volumes: ['docker-data:/var/lib/docker'],
  });
  expect(services['docker']?.['security_opt']).toContain('no-new-privileges:true');
  const added = Object.entries(services).flatMap(([name, { cap_add }]) => (cap_add === undefined ? [] : [name]));
  expect(added).toEqual(['docker']);
  expect(read(machine, 'docker-compose.yaml')).not.toMatch(/docker\.sock|privileged: true/);
  const env = services['dev']?.['environment'] as Record<string, string>;
  expect([env['DOCKER_HOST'], 'ALL_PROXY' in env]).toEqual(['tcp://127.0.0.1:2375', false]);
  expect(read(machine, 'allow-list.txt')).toContain('\n# images for docker\nregistry-1.docker.io\n');
});

test.each([
  ['services: { docker: redis }\n', 'cannot be called "docker"'],
  ['services: { gateway: redis }\n', 'cannot be called "gateway"'],
  ['services: { a: redis, b: valkey }\n', 'a and b have the same port'],
])('a project with %j is refused', async (text, problem) => {
  using machine = createMachine('user');
  writeFileSync(join(machine.project, 'ags.yaml'), text);
  const { code, stderr } = await machine.ags(['devcontainer', 'init']);
  expect([code, stderr.includes(problem)], stderr).toEqual([2, true]);
  expect(machine.has('.devcontainer')).toBe(false);
});
