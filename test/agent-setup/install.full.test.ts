// test/agent-setup/install.full.test.ts: ags installs agents from a registry, in a sandbox, completely or not at all.
import {
  appendFileSync,
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test, vi } from 'vitest';
import { ownIdentity } from '../../src/lib/process/liveness.ts';
import type { TaskPaths } from '../../src/store/layout.ts';
import { createTask, removeTask } from '../../src/store/tasks.ts';
import { giveTo, USUAL } from '../harness.ts';
import { acmeProgram, createPlace, type Place } from './fixture.ts';

const data = (place: Place, ...path: string[]): string => join(place.machine.home, '.local/share/ags/agents', ...path);
const installed = (place: Place): string | null => {
  const file = data(place, 'acme/current.json');
  return existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version : null;
};

interface Listed {
  agents: { name: string; installed: boolean; version: string | null; source: string | null; hooks: string }[];
}

async function listed(place: Place): Promise<Listed['agents']> {
  const { stdout } = await place.ags(['agents', '--json']);
  return (JSON.parse(stdout) as Listed).agents;
}

/** Creates a task that looks running: its runner is this process. */
function pretendTask(place: Place, agent: string): TaskPaths {
  const goal = {
    text: '',
    agent,
    interactive: false,
    base: '',
    baseRef: null,
    maxSeconds: null,
    maxCostMicros: null,
    maxTurns: null,
    maxTokens: null,
    parallel: 4,
    flags: {},
  };
  const { paths } = createTask(
    place.machine.stateDir,
    () => 'goal-abcd',
    (id) => ({
      task: {
        version: 1,
        id,
        name: id,
        kind: 'agent',
        goal,
        project: place.machine.project,
        git: true,
        command: [],
        createdAt: new Date().toISOString(),
      },
      run: {
        version: 1,
        state: 'running',
        startedAtMs: 0,
        exitCode: null,
        label: '',
        workspace: 'overlay',
        hidden: [],
        revealed: [],
        base: null,
        objectFormat: 'sha1',
        runner: ownIdentity(),
        user: { uid: 1, gid: 1 },
        settled: [],
        ignoredDiscarded: false,
      },
    }),
  );
  giveTo(place.machine.stateDir, place.machine.uid);
  return paths;
}

describe.each(USUAL)('as %s', (caller) => {
  test('agents can be installed, listed, installed in another version, updated and removed', async () => {
    await using place = await createPlace(caller);
    for (const version of ['0.9.0', '1.0.0'])
      place.registry.publish('acme-agent', version, { 'bin/acme.js': acmeProgram(version) });
    expect((await place.ags(['agents', 'install', 'acme', '--version', '0.9.0'])).stdout).toMatch(
      /^Installed Acme Agent 0\.9\.0 \(/,
    );
    expect((await listed(place)).map(({ name, version, source, hooks }) => [name, version, source, hooks])).toEqual([
      ['acme', '0.9.0', 'installed', 'enforced'],
      ['bolt', null, null, 'observed'],
      ['plain', null, 'built-in', 'enforced'],
    ]);
    expect((await place.ags(['agents', 'update'])).stdout).toMatch(/^Installed Acme Agent 1\.0\.0 /);
    expect(readdirSync(data(place, 'acme')).toSorted()).toEqual(['1.0.0', 'current.json']);
    expect((await place.ags(['agents', 'update'])).stdout).toBe('All installed agents are up to date.\n');
    expect((await place.ags(['agents', 'install', 'acme'])).stdout).toContain('is already installed');
    const shown = await place.ags(['agents']);
    expect(shown.stdout).toContain('acme   Acme Agent  1.0.0 (by ags)  no');
    const task = pretendTask(place, 'acme');
    expect(await place.ags(['agents', 'remove', 'acme'])).toMatchObject({ code: 7 });
    removeTask(task);
    expect((await place.ags(['agents', 'remove', 'acme'])).stdout).toBe('Removed Acme Agent.\n');
    expect(existsSync(data(place, 'acme'))).toBe(false);
    expect((await listed(place))[0]).toMatchObject({ installed: false, version: null });
    expect(readdirSync(data(place))).toEqual([]);
    expect(place.machine.tasks()).toEqual([]);
  }, 120_000);

  test('no script of a package runs, and installed files belong to the user', async () => {
    await using place = await createPlace(caller);
    const script = "node -e \"require('fs').writeFileSync('ran', '')\"";
    place.registry.publish(
      'acme-agent',
      '1.0.0',
      { 'bin/acme.js': acmeProgram('1.0.0') },
      { scripts: { preinstall: script, install: script, postinstall: script } },
    );
    expect(await place.ags(['agents', 'install', 'acme'])).toMatchObject({ code: 0 });
    const at = data(place, 'acme/1.0.0/node_modules/acme-agent');
    expect(readdirSync(at).toSorted()).toEqual(['bin', 'package.json']);
    const { uid, mode } = statSync(join(at, 'bin/acme.js'));
    expect([uid, mode & 0o7777]).toEqual([place.machine.uid, 0o755]);
    // A program that only such a script would make executable.
    const files = {
      'bin/acme.js': acmeProgram('1.1.0'),
      'vendor/tool': '\x7fELF and more',
      'notes.txt': 'no program\n',
    };
    place.registry.publish('acme-agent', '1.1.0', files, {}, 0o644);
    expect(await place.ags(['agents', 'install', 'acme', '--version', '1.1.0'])).toMatchObject({ code: 0 });
    const modeOf = (path: string): number =>
      statSync(data(place, 'acme/1.1.0/node_modules/acme-agent', path)).mode & 0o7777;
    expect(['vendor/tool', 'notes.txt'].map(modeOf)).toEqual([0o755, 0o644]);
    // An installation of an earlier ags is mended by the next.
    chmodSync(data(place, 'acme/1.1.0/node_modules/acme-agent/vendor/tool'), 0o644);
    expect((await place.ags(['agents', 'install', 'acme', '--version', '1.1.0'])).stdout).toContain(
      'already installed',
    );
    expect(modeOf('vendor/tool')).toBe(0o755);
  }, 120_000);

  test('npm credentials stay outside, and only the registry is reachable', async () => {
    await using place = await createPlace(caller);
    place.registry.publish('acme-agent', '1.0.0', { 'bin/acme.js': acmeProgram('1.0.0') });
    const { host } = new URL(place.registry.url);
    writeFileSync(
      join(place.machine.home, '.npmrc'),
      `registry=${place.registry.url}\n//${host}/:_authToken=npm_CANARYTOKEN\n`,
    );
    // Rules for projects do not apply to packages.
    appendFileSync(
      join(place.machine.home, '.config/ags/config.yaml'),
      '  allow: [allowed.test]\nenv: { pass: [NPM_TOKEN] }\n',
    );
    giveTo(place.machine.home, place.machine.uid);
    const env = { npm_config_registry: '', NPM_TOKEN: 'npm_CANARYTOKEN' };
    expect(await place.ags(['agents', 'install', 'acme'], { env })).toMatchObject({ code: 0 });
    expect(place.registry.asked.length).toBeGreaterThanOrEqual(2);
    expect(place.registry.asked.filter(({ authorization }) => authorization !== undefined)).toEqual([]);
    // A package with a dependency from elsewhere.
    place.registry.publish(
      'acme-agent',
      '1.1.0',
      { 'bin/acme.js': acmeProgram('1.1.0') },
      { dependencies: { other: 'https://allowed.test/other.tgz' } },
    );
    const other = await place.ags(['agents', 'install', 'acme', '--version', '1.1.0']);
    expect(other).toMatchObject({ code: 9 });
    expect(other.stderr).toContain('Acme Agent could not be installed');
    expect(other.stderr).toContain('It tried to reach allowed.test');
    expect([installed(place), place.requests]).toEqual(['1.0.0', []]);
  }, 120_000);

  test('a package without its program, or with a program that does not run, is not installed', async () => {
    await using place = await createPlace(caller);
    place.registry.publish('acme-agent', '1.0.0', { 'other.js': '' });
    place.registry.publish('acme-agent', '1.0.1', { 'bin/acme.js': 'process.exit(3)' });
    const empty = await place.ags(['agents', 'install', 'acme']);
    expect(empty).toMatchObject({ code: 9, stdout: '' });
    expect(empty.stderr).toContain('the package does not contain acme-agent/bin/acme.js');
    const broken = await place.ags(['agents', 'install', 'acme', '--version', 'latest']);
    expect(broken).toMatchObject({ code: 9, stdout: '' });
    expect(broken.stderr).toContain('it does not print its version in a sandbox (exit code 3)');
    expect([readdirSync(data(place)), (await listed(place))[0]?.installed]).toEqual([[], false]);
  }, 120_000);

  test('a killed installation does not count, and the next one cleans up', async () => {
    await using place = await createPlace(caller);
    place.registry.publish('acme-agent', '1.0.0', { 'bin/acme.js': acmeProgram('1.0.0') });
    let go = (): void => undefined;
    place.registry.hold = new Promise((resolve) => (go = resolve));
    const child = place.start(['cli', 'agents', 'install', 'acme']);
    const second = place.ags.bind(place, ['agents', 'install', 'acme']);
    await vi.waitFor(() => expect(place.registry.asked.at(-1)?.path).toMatch(/tgz$/), {
      timeout: 80_000,
      interval: 20,
    });
    expect(await second()).toMatchObject({ code: 7 });
    child.kill('SIGKILL');
    await new Promise((resolve) => child.on('close', resolve));
    expect(readdirSync(data(place)).filter((name) => name.startsWith('.apart-'))).toHaveLength(1);
    expect((await listed(place))[0]).toMatchObject({ installed: false });
    go();
    place.registry.hold = null;
    expect(await second()).toMatchObject({ code: 0 });
    expect(readdirSync(data(place))).toEqual(['acme']);
    expect((await listed(place))[0]).toMatchObject({ installed: true, version: '1.0.0' });
  }, 180_000);

  test('a version that was moved into place before current.json was written does not count', async () => {
    await using place = await createPlace(caller);
    mkdirSync(data(place, 'acme/1.0.0/node_modules/acme-agent/bin'), { recursive: true });
    writeFileSync(data(place, 'acme/1.0.0/node_modules/acme-agent/bin/acme.js'), 'process.exit(1)');
    giveTo(join(place.machine.home, '.local'), place.machine.uid);
    expect((await listed(place))[0]).toMatchObject({ installed: false });
    place.registry.publish('acme-agent', '1.0.0', { 'bin/acme.js': acmeProgram('1.0.0') });
    expect(await place.ags(['agents', 'install', 'acme'])).toMatchObject({ code: 0 });
    expect(readdirSync(data(place, 'acme')).toSorted()).toEqual(['1.0.0', 'current.json']);
  }, 120_000);
});
