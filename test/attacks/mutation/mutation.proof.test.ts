// test/attacks/mutation/mutation.proof.test.ts: removes one protection at a time, and shows that an attack then succeeds. A protection that
// no attack misses is useless or untested.
// The machine is safe: a mutant reaches a throw-away home, and the programs open files but do not write.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Mount, SandboxSpec } from '../../../src/protocol/spec.ts';
import { hostPath, sandboxPath } from '../../../src/protocol/spec.ts';
import type { Launch } from '../../../src/sandbox/native/launch.ts';
import { assemble } from '../../../src/sandbox/spec/seccomp.ts';
import { type Caller, CALLERS, createMachine, ROOTS_USER, type Machine, ONE } from '../../harness.ts';
import { breaches } from '../../../src/attack/table/attack.ts';
import { batchInput, batchProgram, parseAnswers } from '../../../src/attack/table/batch.ts';
import { instead, prepareMutant, runMutant, without, type Mutation } from './mutant.ts';
import { FILE_ATTACKS } from '../../../src/attack/table/files.ts';
import { IDENTITY_ATTACKS } from '../../../src/attack/table/identity.ts';
import { KERNEL_ATTACKS } from '../../../src/attack/table/kernel.ts';
import { NETWORK_ATTACKS } from '../../../src/attack/table/network.ts';
import { createVictims, type Victims } from '../victims.ts';

const ATTACKS = [...FILE_ATTACKS, ...KERNEL_ATTACKS, ...NETWORK_ATTACKS, ...IDENTITY_ATTACKS].filter(
  ({ needs }) => needs === undefined,
);
const ARCH = process.arch === 'arm64' ? 'arm64' : 'x64';

interface Protection extends Mutation {
  readonly name: string;
  /** Protections that back this one up; they are removed too, in both runs. */
  readonly behind?: Mutation;
  /** The caller for whom it matters; the other caller's launcher has a second protection. */
  readonly only?: Caller;
}

const noFilter: Mutation = { filter: () => assemble(ARCH, {}) };
const mounts = (change: (mount: Mount, spec: SandboxSpec) => readonly Mount[]): Mutation => ({
  spec: (spec) => ({ ...spec, mounts: spec.mounts.flatMap((mount) => change(mount, spec)) }),
});
const show = (path: string, writable = false): Mount => ({
  kind: 'bind',
  from: hostPath(path),
  to: sandboxPath(path),
  writable,
  why: 'mutant',
});
const writable = (why: string): Mutation =>
  mounts((mount) => [mount.kind === 'bind' && mount.why === why ? { ...mount, writable: true } : mount]);

/** The first process is visible, with its memory and its arguments. */
const uncovered = (l: Launch): Launch =>
  instead(l, ['--perms', '0555', '--tmpfs', '/proc/1', '--remount-ro', '/proc/1'], []);

const PROTECTIONS: readonly Protection[] = [
  { name: 'a network namespace', launch: (l) => without(l, '--unshare-net') },
  {
    name: 'a process namespace',
    launch: (l) => instead(without(l, '--unshare-pid'), ['--proc', '/proc'], ['--ro-bind', '/proc', '/proc']),
  },
  { name: 'an IPC namespace', launch: (l) => without(l, '--unshare-ipc') },
  { name: 'a host name of its own', launch: (l) => without(without(l, '--unshare-uts'), '--hostname', 1) },
  { name: 'a cgroup namespace', launch: (l) => without(l, '--unshare-cgroup') },
  { name: 'the kernel limit on user namespaces', launch: (l) => without(l, '--disable-userns'), behind: noFilter },
  { name: 'an empty environment', launch: (l) => without(l, '--clearenv') },
  {
    name: 'a clean environment of the launcher',
    callerEnv: true,
    launch: uncovered,
    behind: { launch: uncovered },
  },
  { name: 'the cover over the first process', launch: uncovered },
  {
    name: 'the veil over tool directories',
    launch: (l) => ({
      ...l,
      argv: l.argv.map((word) => (word === 'map,must' ? 'map,no' : word)),
      // A user's binds need no staging directory without it.
      bwrapArgs: l.bwrapArgs.map((word) => l.staged.find((s) => !s.mapped && word.endsWith(`/${s.at}`))?.from ?? word),
    }),
  },
  { name: 'dropping capabilities', launch: (l) => without(l, '--cap-drop', 1), only: 'user' },
  {
    name: 'an identity that is not root inside',
    launch: (l) => without(without(l, '--uid', 1), '--gid', 1),
    only: 'user',
  },
  {
    name: 'giving root up',
    launch: (l) => ({
      ...l,
      argv: l.argv.map((word) => (word === `${ROOTS_USER},${ROOTS_USER},0,0` ? '0,0,0,0' : word)),
    }),
    only: 'root',
  },
  { name: 'a session of its own', launch: (l) => without(l, '--new-session') },
  { name: 'a read-only root', launch: (l) => without(l, '--remount-ro', 1, ([path]) => path === '/') },
  { name: 'a read-only /dev', launch: (l) => without(l, '--remount-ro', 1, ([path]) => path === '/dev') },
  { name: 'the filter of system calls', ...noFilter },
  { name: 'loading the filter', launch: (l) => without(l, '--seccomp', 1) },
  {
    name: 'hiding secrets and sockets of the project',
    plan: (plan) => ({ ...plan, hidden: { ...plan.hidden, paths: [] } }),
  },
  {
    name: 'a home of its own',
    ...mounts((mount, spec) => [
      mount.kind === 'bind' && mount.to === spec.env['HOME'] ? { ...mount, from: hostPath(mount.to) } : mount,
    ]),
  },
  {
    name: 'temporary files of its own',
    // Not as a mount of the plan: it would lie under an overlay, which cannot be where something is mounted below /tmp, as a clone may be.
    launch: (l) => instead(l, ['--tmpfs', '/tmp'], ['--tmpfs', '/tmp', '--ro-bind', '/tmp', '/tmp']),
  },
  { name: 'bounds on temporary files', launch: (l) => without(l, '--size', 1) },
  {
    name: 'a process list of its own',
    launch: (l) => instead(l, ['--proc', '/proc'], ['--ro-bind', '/proc', '/proc']),
  },
  {
    name: 'a /dev of its own',
    launch: (l) =>
      instead(
        without(l, '--remount-ro', 1, ([path]) => path === '/dev'),
        ['--dev', '/dev'],
        ['--dev-bind', '/dev', '/dev'],
      ),
  },
  {
    name: 'a /run and a /var of its own',
    ...mounts((mount) =>
      mount.kind === 'dir' && ['/run', '/var'].includes(mount.to)
        ? [mount, show(mount.to === '/run' ? '/run/lock' : '/var/log')]
        : [mount],
    ),
  },
  {
    name: 'a /etc of its own',
    ...mounts((mount) => [mount.kind === 'bind' && mount.to === '/etc' ? show('/etc') : mount]),
  },
  {
    name: 'the list of what is visible',
    ...mounts((mount) => (mount.kind === 'dev' ? [mount, show('/boot')] : [mount])),
  },
  { name: 'a list of variables', spec: (spec) => ({ ...spec, env: { ...spec.env, SECRET_TOKEN: 'x' } }) },
  { name: 'read-only system directories', ...writable('the system') },
  { name: 'read-only tool directories', ...writable('tool directory of the home') },
  { name: 'read-only objects', ...writable('objects of your repository') },
  {
    name: 'a git directory of its own',
    ...mounts((mount) => [
      mount.kind === 'bind' && mount.why.endsWith('own git directory') ? { ...mount, from: hostPath(mount.to) } : mount,
    ]),
  },
  { name: 'copy-on-write', ...mounts((mount) => [mount.kind === 'workspace' ? { ...show(mount.to, true) } : mount]) },
  {
    name: 'limits',
    launch: (l) => ({
      ...l,
      argv: l.argv.filter(
        (word, i) =>
          !(
            word.endsWith('/prlimit') ||
            /^--(core|nofile|fsize|nproc|data|cpu)=/.test(word) ||
            (word === '--' && l.argv[i - 1]?.startsWith('--') === true && /=/.test(l.argv[i - 1] ?? ''))
          ),
      ),
    }),
  },
  { name: 'closed descriptors', descriptor: true },
  {
    name: 'arguments out of sight',
    behind: { launch: uncovered },
    launch(l) {
      const { bwrapArgs } = uncovered(l);
      return {
        ...l,
        argv: l.argv.flatMap((word, i) => (word === '--args' ? bwrapArgs : l.argv[i - 1] === '--args' ? [] : [word])),
      };
    },
  },
];

/** The protection that makes each mount safe; null: the mount shows nothing of the user's. */
const MOUNTS: Readonly<Record<string, string | null>> = {
  'the system': 'read-only system directories',
  'tool directory of the home': 'read-only tool directories',
  'objects of your repository': 'read-only objects',
  "the task's own git directory": 'a git directory of its own',
  "the task's own home": 'a home of its own',
  'a copy of the settings that etc: names, with accounts of its own': 'a /etc of its own',
  workspace: 'copy-on-write',
  proc: 'a process list of its own',
  dev: 'a /dev of its own',
  tmpfs: 'temporary files of its own',
  dir: 'a /run and a /var of its own',
  symlink: null,
};

describe.each(CALLERS)('as %s', (caller) => {
  const stage = createStage(caller);
  const here = PROTECTIONS.filter((one) => one.only === undefined || one.only === caller);
  const noticed = new Map<string, readonly string[]>();
  let known: ReadonlySet<string>;

  beforeAll(async () => {
    known = new Set(await stage.attack({}));
  });
  afterAll(() => stage.close());

  test('the unchanged sandbox, prepared in the same way, stops every attack', () => {
    expect([...known]).toEqual([]);
  });

  test.for(here.map((one) => [one.name, one] as const))(
    'without %s, an attack succeeds',
    async ([name, protection]) => {
      const before = protection.behind === undefined ? known : new Set(await stage.attack(protection.behind));
      const found = (await stage.attack({ ...protection.behind, ...protection })).filter((one) => !before.has(one));
      noticed.set(name, found);
      expect(found).not.toEqual([]);
    },
  );

  test('every protection is missed by an attack', () => {
    expect(here.filter((one) => (noticed.get(one.name) ?? []).length === 0).map((one) => one.name)).toEqual([]);
  });
});

/** bubblewrap's options that take nothing away, and those that other tests cover. */
const NOT_HERE: Readonly<Record<string, string>> = {
  '--setenv': 'gives',
  '--chdir': 'gives',
  '--bind': 'gives; what may be written is a protection of each mount, above',
  '--ro-bind': 'gives; see above',
  '--symlink': 'gives',
  '--dir': 'gives',
  '--perms': 'belongs to what follows it',
  '--tmpfs': 'gives; its bounds are above',
  '--json-status-fd': 'tells us its first process',
  '--unshare-user': 'nothing starts without it',
  '--die-with-parent': 'test/attacks/lifetime.test.ts',
};

describe('the list of protections is complete', () => {
  const here = PROTECTIONS.map(({ launch, spec, name }) => `${name} ${String(launch)} ${String(spec)}`).join(' ');

  test('every option of bubblewrap is removed by a mutant, or is harmless', async () => {
    using machine = createMachine(ONE);
    const seen = new Set<string>();
    await prepareMutant(
      machine,
      {
        launch(launch) {
          for (const word of launch.bwrapArgs) if (/^--[a-z]/.test(word)) seen.add(word);
          return launch;
        },
      },
      ['true'],
    );
    expect(seen.size).toBeGreaterThan(15);
    expect(
      [...seen].filter((option) => !new RegExp(`["']${option}["']`).test(here) && NOT_HERE[option] === undefined),
    ).toEqual([]);
  });

  test('every kind of mount has a protection', async () => {
    using machine = createMachine(ONE);
    const seen = new Set<string>();
    await prepareMutant(
      machine,
      {
        spec(spec) {
          for (const mount of spec.mounts) seen.add(mount.kind === 'bind' ? mount.why : mount.kind);
          return spec;
        },
      },
      ['true'],
    );
    expect([...seen].filter((kind) => !Object.hasOwn(MOUNTS, kind))).toEqual([]);
    const names = new Set(PROTECTIONS.map(({ name }) => name));
    expect(Object.values(MOUNTS).filter((name) => name !== null && !names.has(name))).toEqual([]);
  });
});

interface Stage {
  /** The attacks that succeed, and the host files that were touched. */
  attack(mutation: Mutation): Promise<string[]>;
  close(): Promise<void>;
}

/** A machine with victims; touched victims are replaced by new ones. */
function createStage(caller: Caller): Stage {
  let current: { machine: Machine; victims: Victims } | null = null;
  const close = async (): Promise<void> => {
    await current?.victims[Symbol.asyncDispose]();
    current?.machine[Symbol.dispose]();
    current = null;
  };
  const attempt = async (mutation: Mutation): Promise<{ answers: string[]; touched: string[] }> => {
    if (current === null) {
      const machine = createMachine(caller);
      current = { machine, victims: await createVictims(machine) };
    }
    const { machine, victims } = current;
    const run = await runMutant(
      machine,
      victims,
      mutation,
      ['perl', '-e', batchProgram(process.arch)],
      // A mutant has no gateway (mutant.ts).
      batchInput(ATTACKS, { ...victims.places, NETWORK: 'off' }),
    );
    const touched = victims.touched().map((line) => `touched ${line.split(':')[0]?.replace(machine.root, '')}`);
    if (touched.length > 0) await close();
    // A sandbox that does not start proves nothing.
    if (!run.stdout.includes('attempt\t')) throw new Error(`it does not start: ${run.stderr.trim()}${run.stdout}`);
    return { answers: parseAnswers(run.stdout, ATTACKS), touched };
  };
  return {
    close,
    async attack(mutation) {
      const { answers, touched } = await attempt(mutation);
      const broken = ATTACKS.filter((one, i) => breaches(one, answers[i] ?? '').length > 0);
      return [...broken.map((one) => `${one.id}: ${one.what}`), ...touched];
    },
  };
}
