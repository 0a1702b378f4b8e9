// test/command.test.ts: the file that is called: bin/ags, which a shell reads before Node does.
import { execFileSync, spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readdirSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createMachine, type Machine } from './harness.ts';

const COMMAND = new URL('../bin/ags', import.meta.url).pathname;
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

test.each(SHELLS)('%s hands the command line on to Node as it is', (shell) => {
  using machine = createMachine(CALLER);
  const applet = shell.endsWith('busybox') ? ['sh'] : [];
  const words = ['exec', '--', 'printf', '%s|', 'a b', '', '$HOME', '-x', '*'];
  expect(call(machine, [shell, ...applet, COMMAND, ...words])).toEqual({
    status: 0,
    stdout: 'a b||$HOME|-x|*|',
    stderr: '',
  });
});

test('it is found through a link, and from a directory with an odd name', () => {
  using machine = createMachine(CALLER);
  const odd = '-a directory; with "signs"';
  mkdirSync(join(machine.root, odd));
  symlinkSync(COMMAND, join(machine.root, odd, 'ags'));
  // By path: a shell would need the slash, exec does not.
  const found = call(machine, ['perl', '-e', 'exec { $ARGV[0] } @ARGV', '--', `${odd}/ags`, 'help'], {}, machine.root);
  expect({ status: found.status, stderr: found.stderr }).toEqual({ status: 0, stderr: '' });
  expect(found.stdout).toContain('ags exec');
});

test('without Node it says so', () => {
  using machine = createMachine(CALLER);
  expect(call(machine, [COMMAND, '--version'], { PATH: '/nonexistent' })).toEqual({
    status: 127,
    stdout: '',
    stderr: 'ags: Node.js 20.19 or newer is needed, and there is no "node" in PATH.\n',
  });
});

test('NODE_EXTRA_CA_CERTS does not slow ags down, and goes where the user sends it', () => {
  using machine = createMachine(CALLER);
  const extra = { NODE_EXTRA_CA_CERTS: '/etc/some certificates.pem' };
  const show = ['--', 'sh', '-c', 'env | grep CA_CERTS'];
  // Node complains about a file of certificates that it reads and that is not there.
  expect(call(machine, [COMMAND, 'exec', ...show], extra)).toEqual({ status: 1, stdout: '', stderr: '' });
  expect(call(machine, [COMMAND, 'exec', '--env', 'NODE_EXTRA_CA_CERTS', ...show], extra)).toEqual({
    status: 0,
    stdout: 'NODE_EXTRA_CA_CERTS=/etc/some certificates.pem\n',
    stderr: '',
  });
});

test('without a home in the environment nothing is written into the project', () => {
  using machine = createMachine(CALLER);
  const { HOME: _, ...env } = machine.env;
  execFileSync(COMMAND, ['--version'], { cwd: machine.project, env });
  expect(readdirSync(machine.project).toSorted()).toEqual(['.git', 'README.md', 'src']);
});

// Newer ones keep it themselves.
const ownCode = Number.parseInt(process.versions.node, 10) < 22;

test.runIf(ownCode)('compiled code is taken only from a file that nobody else can write', () => {
  using machine = createMachine(CALLER);
  const cache = join(machine.home, '.cache/ags');
  const compiled = (): string => join(cache, readdirSync(cache).find((name) => /^code-.*\.bin$/.test(name)) ?? 'none');
  const run = (): number => {
    expect(call(machine, [COMMAND, '--version']).status).toBe(0);
    return statSync(compiled()).mtimeMs;
  };
  const first = run();
  expect(run()).toBe(first);
  chmodSync(compiled(), 0o666);
  const second = run();
  expect(second).not.toBe(first);
  writeFileSync(compiled(), 'damaged');
  expect(run()).not.toBe(second);
});
