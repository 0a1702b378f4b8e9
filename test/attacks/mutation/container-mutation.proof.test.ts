// test/attacks/mutation/container-mutation.proof.test.ts: removes one protection of a container at a time, and shows two things: the check
// from outside refuses to start it, where it can see the protection; and if it starts anyway, an attempt of the table succeeds.
// Podman gets its arguments from the same functions, so only Docker is tried.
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { breaches } from '../../../src/attack/table/attack.ts';
import { batchInput, batchProgram, parseAnswers } from '../../../src/attack/table/batch.ts';
import { greedProgram, GREED_ATTACKS } from '../../../src/attack/table/greed-programs.ts';
import { INSIDE_ATTACKS } from '../../../src/attack/table/table.ts';
import { HAS_ENGINE } from '../../conformance/engine.ts';
import { CALLERS, createMachine, type Machine } from '../../harness.ts';
import {
  runContainerMutant,
  withoutOption,
  withValue,
  type ContainerMutation,
  type ContainerRun,
} from './container-mutant.ts';
import { changedProgram, GATE_STEPS } from './perl-steps.ts';
import { createVictims, type Victims } from '../victims.ts';

interface Protection extends ContainerMutation {
  readonly name: string;
  /** The attempt that succeeds without it. */
  readonly by: string;
  /** The message of the check from outside; null: the check cannot see the protection. */
  readonly seen: string | null;
  /** Protections that back this one up; they are removed too, in both runs. */
  readonly behind?: ContainerMutation;
  /** Joins the network of a pause container of ours. */
  readonly joined?: boolean;
}

type Change = NonNullable<ContainerMutation['agent']>;
const all =
  (...changes: readonly Change[]): Change =>
  (args) =>
    changes.reduce((changed, change) => change(changed), args);
const TAKEN_OUT = new Set(['--read-only']);
const drop = (option: string, matches?: (value: string) => boolean): Change => {
  TAKEN_OUT.add(option);
  return (args) => withoutOption(args, option, matches);
};
const put = (option: string, from: RegExp, to: string): Change => {
  TAKEN_OUT.add(option);
  return (args) =>
    withValue(
      args,
      option,
      (value) => value.replace(from, to),
      (value) => from.test(value),
    );
};
const add =
  (...more: readonly string[]): Change =>
  ([run = '', ...args]) => [run, ...more, ...args];
const skip =
  (step: keyof typeof GATE_STEPS): Change =>
  (args) => {
    const at = args.indexOf('-e') + 1;
    return args.with(at, changedProgram(args[at] ?? '', GATE_STEPS[step]));
  };
const writable = (place: string): Change => put('--mount', new RegExp(`(?<=,dst=${place}),readonly`), '');
/** The engine refuses these network settings in a shared network. */
const ofTheHost = all(drop('--sysctl'), drop('--hostname'), drop('--dns'), put('--network', /none/, 'host'));

const NO_FILTER = skip('take the filter');
const NO_GIVING_UP = skip('give privileges up');

const PROTECTIONS: readonly Protection[] = [
  {
    name: 'a read-only root',
    agent: (args) => args.filter((word) => word !== '--read-only'),
    by: 'fs-sandbox-root',
    seen: '/ could be written',
  },
  {
    name: 'dropping capabilities',
    agent: drop('--cap-drop'),
    by: 'kernel-capabilities',
    seen: 'it kept privileges (capabilities)',
  },
  {
    name: 'no new privileges, of the engine',
    agent: all(drop('--security-opt'), NO_FILTER, NO_GIVING_UP),
    behind: { agent: all(NO_FILTER, NO_GIVING_UP) },
    by: 'fs-setuid-program',
    seen: 'it could gain new privileges',
  },
  {
    name: 'no new privileges, of the first process',
    agent: all(drop('--security-opt'), NO_FILTER, NO_GIVING_UP),
    behind: { agent: all(drop('--security-opt'), NO_FILTER) },
    by: 'fs-new-privileges',
    seen: 'it could gain new privileges',
  },
  { name: 'the filter of system calls', agent: NO_FILTER, by: 'net-socket-families', seen: null },
  {
    name: 'an IPC namespace',
    agent: put('--ipc', /none/, 'host'),
    by: 'kernel-shared-ipc',
    seen: 'it shared the ipc namespace of this machine',
  },
  {
    name: 'a cgroup namespace',
    agent: put('--cgroupns', /private/, 'host'),
    by: 'res-control-group',
    seen: 'it shared the cgroup namespace of this machine',
  },
  {
    name: 'a host name of its own',
    agent: all(drop('--hostname'), add('--uts', 'host')),
    by: 'kernel-hostname',
    seen: 'it shared the uts namespace of this machine',
  },
  {
    name: 'a process namespace, which every engine makes',
    agent: add('--pid', 'host'),
    by: 'kernel-foreign-processes',
    seen: 'it shared the pid namespace of this machine',
  },
  {
    name: 'no network',
    agent: ofTheHost,
    by: 'net-host-loopback',
    seen: 'it shared the net namespace of this machine',
  },
  {
    name: 'the network of the pause container',
    joined: true,
    agent: put('--network', /container:.*/, 'host'),
    by: 'net-host-loopback',
    seen: 'it shared the net namespace of this machine',
  },
  {
    name: 'no network of the pause container',
    joined: true,
    pause: ofTheHost,
    by: 'net-host-loopback',
    seen: 'it shared the net namespace of this machine',
  },
  {
    name: 'the ports of root',
    agent: drop('--sysctl', (value) => value.includes('port_start')),
    by: 'net-low-ports',
    seen: null,
  },
  {
    name: 'the ports of root, where the listeners are',
    joined: true,
    pause: drop('--sysctl', (value) => value.includes('port_start')),
    by: 'net-low-ports',
    seen: null,
  },
  { name: 'an identity', agent: drop('--user'), by: 'kernel-become-root', seen: 'it ran as another user' },
  {
    name: 'no further groups',
    agent: add('--group-add', '0'),
    by: 'kernel-become-root',
    seen: 'it belonged to further groups',
  },
  { name: 'limits of each process', agent: drop('--ulimit'), by: 'res-no-limits', seen: null },
  {
    name: 'a limit on processes',
    agent: drop('--pids-limit'),
    by: 'res-fork-bomb',
    seen: null,
  },
  {
    name: 'a limit on memory',
    agent: all(drop('--memory'), drop('--memory-swap')),
    by: 'res-memory',
    seen: null,
  },
  { name: 'being ended first', agent: drop('--oom-score-adj'), by: 'res-oom-score', seen: null },
  {
    name: 'the cover over control groups',
    agent: drop('--tmpfs', (value) => value.startsWith('/sys/fs/cgroup:')),
    by: 'fs-covered-places',
    // The engine's content there depends on the version of control groups.
    seen: 'whatever',
  },
  {
    name: 'the cover over message queues',
    agent: drop('--tmpfs', (value) => value.startsWith('/dev/mqueue:')),
    by: 'fs-covered-places',
    seen: null,
  },
  {
    name: 'no privileged container',
    agent: add('--privileged'),
    by: 'fs-odd-devices',
    seen: 'it kept privileges (capabilities)',
  },
  { name: 'no devices', agent: add('--device', '/dev/kmsg'), by: 'fs-odd-devices', seen: null },
  {
    name: 'no socket of the engine',
    agent: add('--mount', 'type=bind,src=/var/run/docker.sock,dst=/run/docker.sock'),
    by: 'kernel-host-sockets',
    seen: '/run/docker.sock could be written',
  },
  {
    name: 'read-only system directories',
    agent: writable('/usr'),
    by: 'fs-writable-mounts',
    seen: '/usr could be written',
  },
  { name: 'a read-only /etc', agent: writable('/etc'), by: 'fs-system-programs', seen: '/etc could be written' },
  {
    name: 'a read-only /etc/hosts',
    agent: writable('/etc/hosts'),
    by: 'fs-writable-mounts',
    seen: '/etc/hosts could be written',
  },
  {
    name: 'a read-only meeting place',
    agent: writable('/sys/ags'),
    by: 'fs-writable-mounts',
    seen: '/sys/ags could be written',
  },
  { name: 'bounds on temporary files', agent: put('--tmpfs', /,size=\d{6,}/, ''), by: 'res-tmp-size', seen: null },
  {
    name: 'no programs with rights in temporary files',
    agent: put('--tmpfs', /(?<=:rw,exec,)nosuid/, 'suid'),
    by: 'fs-mount-flags',
    seen: null,
  },
  {
    name: 'no devices in temporary files',
    agent: put('--tmpfs', /(?<=:rw,exec,nosuid,)nodev/, 'dev'),
    by: 'fs-mount-flags',
    seen: null,
  },
  {
    name: 'a first process whose memory is closed',
    agent: skip('close this process'),
    by: 'kernel-init-memory',
    seen: null,
  },
  {
    name: 'a list of variables',
    agent: skip('set the variables'),
    by: 'cred-variables',
    seen: null,
  },
];

/** The engine's other options, with the reason why none is a protection here. */
const NOT_HERE: Readonly<Record<string, string>> = {
  '--detach': 'how it is started',
  '--rm': 'nothing is left of it',
  '--pull': 'which image it is is decided by its name',
  '--name': 'how it is found',
  '--label': 'how it is found',
  '--log-driver': 'its first process says nothing',
  '--env': 'takes variables from the first process, which gives programs a list of its own',
  '--dns': 'gives: files of ours are over those of the engine',
  '--workdir': 'gives',
  '--entrypoint': 'gives',
  '--cap-add': 'of the pause container, which drops them: test/conformance/docker.full.test.ts',
};

const LIMITS = Object.fromEntries(GREED_ATTACKS.map(({ id, limits }) => [id, limits]));

describe.runIf(HAS_ENGINE)('a container', () => {
  let machine: Machine;
  let victims: Victims;
  const options = new Set<string>();
  beforeAll(async () => {
    // /var/tmp is /tmp inside, so paths there would have two names.
    machine = createMachine(CALLERS[0] ?? 'user', { disk: '/var/lib' });
    victims = await createVictims(machine);
  });
  afterAll(async () => {
    await victims[Symbol.asyncDispose]();
    machine[Symbol.dispose]();
  });

  /** Whether the attempt succeeds, and the message of the check from outside. */
  async function attempt(
    one: Protection,
    mutation: ContainerMutation,
  ): Promise<{ broken: boolean; seen: string | null }> {
    const how: ContainerRun = { limits: LIMITS[one.by], joined: one.joined, letGo: true };
    const greedy = GREED_ATTACKS.find(({ id }) => id === one.by);
    if (greedy !== undefined) {
      const { stdout, seen } = await runContainerMutant(
        machine,
        mutation,
        how,
        ['perl', '-e', greedProgram(greedy)],
        '',
      );
      return { broken: stdout.includes('got it'), seen };
    }
    const attack = INSIDE_ATTACKS.find(({ id }) => id === one.by) ?? fail();
    const program = ['perl', '-e', batchProgram(process.arch)];
    const run = await runContainerMutant(machine, mutation, how, program, batchInput([attack], victims.places));
    // A container that does not start proves nothing.
    if (!run.stdout.includes('attempt\t')) throw new Error(`it does not start: ${run.stdout}`);
    const [answer = ''] = parseAnswers(run.stdout, [attack]);
    return { broken: breaches(attack, answer, true).length > 0, seen: run.seen };
  }

  test.for(PROTECTIONS.map((one) => [one.name, one] as const))('without %s, an attempt succeeds', async ([, one]) => {
    if (one.behind !== undefined) expect((await attempt(one, one.behind)).broken).toBe(false);
    const { broken, seen } = await attempt(one, one);
    expect({ broken, seen: one.seen === 'whatever' ? one.seen : seen }).toEqual({ broken: true, seen: one.seen });
  });

  test('unchanged, stops each of these attempts', async () => {
    const attacks = INSIDE_ATTACKS.filter(({ id }) => PROTECTIONS.some(({ by }) => by === id));
    const note = (args: readonly string[]): readonly string[] => {
      for (const word of args.slice(0, args.indexOf('-e'))) if (/^--[a-z]/.test(word)) options.add(word);
      return args;
    };
    for (const joined of [false, true]) {
      const run = await runContainerMutant(
        machine,
        { agent: note, pause: note },
        { joined, letGo: false },
        ['perl', '-e', batchProgram(process.arch)],
        batchInput(attacks, victims.places),
      );
      const answers = parseAnswers(run.stdout, attacks);
      expect(attacks.flatMap((one, i) => breaches(one, answers[i] ?? '', true))).toEqual([]);
    }
  });

  test('without one of them is not started', async () => {
    const run = runContainerMutant(machine, { agent: drop('--cap-drop') }, { letGo: false }, ['true'], '');
    await expect(run).rejects.toThrow('it kept privileges (capabilities)');
  });

  // An exception there would end the runner.
  test.for(['before', 'while'] as const)('that ends %s the check is reported at once', async (when) => {
    const ends = (pid: number): void => {
      process.kill(pid, 'SIGKILL');
      while (existsSync(`/proc/${pid}/ns/cgroup`)) spawnSync('sleep', ['0.01']);
    };
    const mutation = when === 'before' ? { earlier: ends } : { meanwhile: ends };
    const run = runContainerMutant(machine, mutation, { letGo: false }, ['echo', 'ran'], '');
    await expect(run).rejects.toThrow('The container ended before the command could start; it was not run.');
  });

  test('that lives but cannot be checked is not started', async () => {
    const meanwhile = (): never => {
      throw new Error('not readable');
    };
    const run = runContainerMutant(machine, { meanwhile }, { letGo: false }, ['echo', 'ran'], '');
    await expect(run).rejects.toThrow('its protection could not be read (not readable)');
  });

  test('gets no engine option that is neither removed here nor listed as harmless', () => {
    expect(options.size).toBeGreaterThan(15);
    expect([...options].filter((option) => !TAKEN_OUT.has(option) && NOT_HERE[option] === undefined)).toEqual([]);
  });
});

function fail(): never {
  throw new Error('there is no such attempt');
}
