// test/sandbox/remote/protection.test.ts: a remote container that has kept any privilege is refused, by its own report or by the engine's.
import { expect, test } from 'vitest';
import { sandboxPath, type SandboxSpec } from '../../../src/protocol/spec.ts';
import { remoteUnprotected } from '../../../src/sandbox/container/protection.ts';
import { LIMITS } from '../../conformance/place.ts';

const SPEC: SandboxSpec = {
  hostname: 'there',
  root: { kind: 'image', reference: 'tiny', id: 'sha256:0', variables: [], volumes: [] },
  user: { uid: 1000, gid: 1000, name: 'agent' },
  mounts: [{ kind: 'tmpfs', to: sandboxPath('/tmp'), bytes: 1, mode: '1777', why: '' }],
  env: {},
  workdir: sandboxPath('/'),
  network: { kind: 'loopback' },
  limits: LIMITS,
  kernel: { ptrace: false, unixSockets: true },
  runtime: null,
};
const ids = (id: number): string => Array(4).fill(id).join('\t');
const STATUS = `Uid:\t${ids(1000)}\nGid:\t${ids(1000)}\nGroups:\t1000\n${['Inh', 'Prm', 'Eff', 'Bnd', 'Amb'].map((set) => `Cap${set}:\t0000000000000000\n`).join('')}NoNewPrivs:\t1\nSeccomp:\t2\n`;
const mount = (path: string, how: string): string => `1 1 0:1 / ${path} ${how},relatime - tmpfs tmpfs ${how}\n`;
const MOUNTS = `${['/', '/sys', '/sys/ags', '/sys/perl', '/etc/ld.so.preload'].map((path) => mount(path, 'ro')).join('')}${mount('/tmp', 'rw')}`;
const DEVICES = 'Inter-|   Receive\n face |bytes\n    lo:       0\n';
const NAMESPACES = ['ipc', 'uts', 'mnt', 'pid', 'cgroup', 'net'].map((name, n) => `${name}:[${n}]`);
const BUILT = {
  Privileged: false,
  PidMode: '',
  IpcMode: 'none',
  UTSMode: '',
  UsernsMode: '',
  CgroupnsMode: 'private',
  NetworkMode: 'none',
  ReadonlyRootfs: true,
  CapAdd: null,
  Devices: [],
  Memory: LIMITS.memoryBytes,
  PidsLimit: LIMITS.processes,
};

function pack(words: readonly string[]): Buffer {
  return Buffer.concat(
    words.flatMap((word) => {
      const size = Buffer.alloc(4);
      size.writeUInt32BE(Buffer.byteLength(word));
      return [size, Buffer.from(word)];
    }),
  );
}

const look = (
  words: Partial<Record<'pid' | 'status' | 'mounts' | 'devices', string>>,
  built: object = {},
): string | null =>
  remoteUnprotected(
    pack([words.pid ?? '1', words.status ?? STATUS, words.mounts ?? MOUNTS, words.devices ?? DEVICES, ...NAMESPACES]),
    { HostConfig: { ...BUILT, ...built } },
    SPEC,
  );

test('a container without privileges may start', () => {
  expect(look({})).toBeNull();
  expect(look({ devices: `${DEVICES}  tunl0:       0\n` })).toBeNull();
});

test.each([
  ['the processes of its machine', { pid: '4711' }, /saw the processes/],
  [
    'a capability',
    { status: STATUS.replace('CapBnd:\t0000000000000000', 'CapBnd:\t0000000000000400') },
    /kept privileges/,
  ],
  ['no system call filter', { status: STATUS.replace('Seccomp:\t2', 'Seccomp:\t0') }, /not filtered/],
  ['another user', { status: STATUS.replace(ids(1000), ids(0)) }, /another user/],
  ['a network', { devices: `${DEVICES}  eth0:       0\n` }, /had a network/],
  ['a writable mount', { mounts: `${MOUNTS}${mount('/data', 'rw')}` }, /\/data could be written/],
  ['no report', { status: '' }, /kept privileges/],
])('a container with %s may not', (_what, words, why) => {
  expect(look(words)).toMatch(why);
});

test.each([
  ['Privileged', true],
  ['PidMode', 'host'],
  ['IpcMode', 'host'],
  ['UTSMode', 'host'],
  ['UsernsMode', 'host'],
  ['CgroupnsMode', 'host'],
  ['NetworkMode', 'host'],
  ['ReadonlyRootfs', false],
  ['CapAdd', ['SYS_ADMIN']],
  ['Devices', [{}]],
  ['Memory', 0],
  ['PidsLimit', null],
])('a container that the engine built with %s %s may not', (name, value) => {
  expect(look({}, { [name]: value })).not.toBeNull();
});

test('a broken report and a silent engine are refused', () => {
  expect(remoteUnprotected(Buffer.from([0, 0, 9]), { HostConfig: BUILT }, SPEC)).toMatch(/report was incomplete/);
  expect(remoteUnprotected(pack(['1', STATUS, MOUNTS, DEVICES, ...NAMESPACES]), null, SPEC)).toMatch(/did not report/);
});
