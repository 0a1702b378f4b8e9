// test/cli/command.test.ts: bin/ags, which a shell reads before Node.
// needs: sandbox
import { execFileSync, spawnSync } from 'node:child_process';
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { createMachine, type Machine } from '../harness.ts';

const COMMAND = fileURLToPath(new URL('../../bin/ags', import.meta.url));
const CALLER = process.getuid?.() === 0 ? 'root' : 'user';
const SHELLS = ['/bin/sh', '/bin/bash', '/usr/bin/dash', '/usr/bin/busybox'].filter((path) => existsSync(path));

function call(machine: Machine, argv: readonly string[], env: Record<string, string> = {}, cwd = machine.project) {
  const [file = '', ...args] = argv;
  const { status, stdout, stderr } = spawnSync(file, args, {
    cwd,
    env: { ...machine.env, ...env },
    encoding: 'utf8',
  });
  return { status, stdout, stderr };
}

test.each(SHELLS)('%s passes the command line to Node unchanged', (shell) => {
  using machine = createMachine(CALLER);
  const applet = shell.endsWith('busybox') ? ['sh'] : [];
  const words = ['exec', '--', 'printf', '%s|', 'a b', '', '$HOME', '-x', '*'];
  expect(call(machine, [shell, ...applet, COMMAND, ...words])).toEqual({
    status: 0,
    stdout: 'a b||$HOME|-x|*|',
    stderr: '',
  });
});

test('the command works through a link and from a directory with an unusual name', () => {
  using machine = createMachine(CALLER);
  const odd = '-a directory; with "signs"';
  mkdirSync(join(machine.root, odd));
  symlinkSync(COMMAND, join(machine.root, odd, 'ags'));
  // exec runs it by name, without the slash that a shell would need.
  const found = call(machine, ['perl', '-e', 'exec { $ARGV[0] } @ARGV', '--', `${odd}/ags`, 'help'], {}, machine.root);
  expect({ status: found.status, stderr: found.stderr }).toEqual({ status: 0, stderr: '' });
  expect(found.stdout).toContain('ags exec');
});

test('messages name the command as it was started, and only where it would be typed', () => {
  using machine = createMachine(CALLER);
  const link = (dir: string): string => {
    mkdirSync(join(machine.root, dir), { recursive: true });
    symlinkSync(COMMAND, join(machine.root, dir, 'ags'));
    return join(machine.root, dir);
  };
  const [bin, local, npx] = ['bin', 'package/node_modules/.bin', 'cache/_npx/4f/node_modules/.bin'].map(link);
  const shown = (command: string, path = '', cwd = machine.project): string => {
    const env = { PATH: `${path}:${process.env['PATH'] ?? ''}` };
    return call(machine, [command, 'show', 'nothing'], env, cwd).stderr;
  };
  const hint = (command: string): string => `ags: There is no task "nothing".\n     List them: ${command} list --all\n`;
  expect({
    installed: shown(join(bin ?? '', 'ags'), bin),
    'in a package': shown(join(local ?? '', 'ags'), local),
    'by npx alone': shown(join(npx ?? '', 'ags'), npx),
    'another one comes first': shown(join(local ?? '', 'ags'), '/nonexistent'),
    'in this directory': shown('bin/ags', '', machine.root),
  }).toEqual({
    installed: hint('ags'),
    'in a package': hint('npx ags'),
    'by npx alone': hint('npx @ags/cli'),
    'another one comes first': hint(join(local ?? '', 'ags')),
    'in this directory': hint('./bin/ags'),
  });
});

test('without Node the command says so', () => {
  using machine = createMachine(CALLER);
  expect(call(machine, [COMMAND, '--version'], { PATH: '/nonexistent' })).toEqual({
    status: 127,
    stdout: '',
    stderr: 'ags: Node.js 20.19 or newer is needed, and there is no "node" in PATH.\n',
  });
});

test('NODE_EXTRA_CA_CERTS does not slow ags down and is passed on only on request', () => {
  using machine = createMachine(CALLER);
  const extra = { NODE_EXTRA_CA_CERTS: '/etc/some certificates.pem' };
  const show = ['--', 'sh', '-c', 'env | grep CA_CERTS'];
  // Node complains about a missing certificate file if it reads the variable.
  expect(call(machine, [COMMAND, 'exec', ...show], extra)).toEqual({ status: 1, stdout: '', stderr: '' });
  expect(call(machine, [COMMAND, 'exec', '--env', 'NODE_EXTRA_CA_CERTS', ...show], extra)).toEqual({
    status: 0,
    stdout: 'NODE_EXTRA_CA_CERTS=/etc/some certificates.pem\n',
    stderr: '',
  });
});

test('without HOME nothing is written into the project', () => {
  using machine = createMachine(CALLER);
  const { HOME: _, ...env } = machine.env;
  execFileSync(COMMAND, ['--version'], { cwd: machine.project, env });
  expect(readdirSync(machine.project).toSorted()).toEqual(['.git', 'README.md', 'src']);
});

// Node 22 and later cache compiled code themselves.
const ownCode = Number.parseInt(process.versions.node, 10) < 22;

test.runIf(ownCode)('the code cache is used only if no other user can write to it', () => {
  using machine = createMachine(CALLER);
  const cache = join(machine.home, '.cache/ags');
  const compiled = (): string[] => readdirSync(cache).filter((name) => /^code-.*\.bin$/.test(name));
  const run = (): Map<string, number> => {
    expect(call(machine, [COMMAND, '--version']).status).toBe(0);
    return new Map(compiled().map((name) => [name, statSync(join(cache, name)).mtimeMs]));
  };
  const first = run();
  expect([...first.keys()]).toEqual([expect.stringMatching(/-other\.bin$/)]);
  expect(run()).toEqual(first);
  for (const name of first.keys()) {
    const before = run();
    const changed = (after: Map<string, number>): string[] =>
      [...after.keys()].filter((other) => after.get(other) !== before.get(other));
    chmodSync(join(cache, name), 0o666);
    expect(changed(run())).toEqual([name]);
    expect(statSync(join(cache, name)).mode & 0o777).toBe(0o600);
    writeFileSync(join(cache, name), 'damaged');
    expect(changed(run())).toEqual([name]);
    expect(readFileSync(join(cache, name), 'latin1')).not.toBe('damaged');
  }
});

test.runIf(ownCode)('the code cache of another build with the same size and time is not used, and is removed', () => {
  using machine = createMachine(CALLER);
  const cache = join(machine.home, '.cache/ags');
  const installed = join(machine.root, 'installed');
  for (const part of ['bin', 'dist/bundle', 'package.json'])
    cpSync(new URL(`../../${part}`, import.meta.url), join(installed, part), { recursive: true });
  const file = join(installed, 'dist/bundle/hot.cjs');
  const command = join(installed, 'bin/ags');
  // npm gives all packages the same time.
  const age = (): void => utimesSync(file, 499_162_500, 499_162_500);
  age();
  const name = (): string => call(machine, [command, 'exec', '--', 'uname', '-n']).stdout.trim();
  expect(name()).toBe('sandbox');
  const before = readdirSync(cache);
  const text = readFileSync(file, 'latin1');
  expect(text).toContain('hostname:`sandbox`');
  writeFileSync(file, text.replace('hostname:`sandbox`', 'hostname:`another`'), 'latin1');
  age();
  expect(name()).toBe('another');
  expect(readdirSync(cache).filter((name) => name.startsWith('code-') && before.includes(name))).toEqual([]);
});

test('words after --version and --help are not ignored', () => {
  using machine = createMachine(CALLER);
  expect(call(machine, [COMMAND, '--version', 'now'])).toEqual({
    status: 2,
    stdout: '',
    stderr: 'ags: ags --version takes no arguments; not used: now\n     Usage: ags --version\n',
  });
  expect(call(machine, [COMMAND, '--help', 'stop']).stdout).toContain('Usage\n  ags stop <task>...');
});
