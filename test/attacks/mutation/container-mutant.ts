// test/attacks/mutation/container-mutant.ts: the container that `ags exec` would start, made by the same functions, with one protection taken out of
// the engine's command lines before it is told. What looks at it from outside can be made to look away.
import { closeSync, mkdirSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { vi } from 'vitest';
import type { SandboxSpec } from '../../../src/protocol/spec.ts';
import { nativeOptions } from '../../../src/run/native-options.ts';
import { OFFLINE } from '../../../src/run/network/plan-network.ts';
import { containerOptions } from '../../../src/run/open-backend.ts';
import { createRun } from '../../../src/run/create-run.ts';
import { giveTo, type Machine } from '../../harness.ts';
import { makeHome, newTask, planFor, same } from './mutant.ts';
import { contextOf } from '../own-context.ts';

type Args = readonly string[];

/** What to take out. Each part gets what the real functions made, and returns what is started instead. */
export interface ContainerMutation {
  readonly agent?: (args: Args) => Args;
  readonly holder?: (args: Args) => Args;
  readonly spec?: (spec: SandboxSpec) => SandboxSpec;
  /** Happens to its first process just before it is looked at from outside, and at that very moment. */
  readonly earlier?: (pid: number) => void;
  readonly meanwhile?: (pid: number) => void;
}

export interface ContainerRun {
  /** Whatever is seen from outside, it goes on. */
  readonly letGo: boolean;
  readonly limits?: Readonly<Record<string, string>> | undefined;
  /** In a network that another container holds. */
  readonly joined?: boolean | undefined;
}

export interface Outcome {
  /** What is missing, by whoever looks from outside; null: nothing. */
  readonly seen: string | null;
  readonly stdout: string;
}

/** Of the mutant that is being made: modules are replaced once for all of them. */
const current: { mutation: ContainerMutation; letGo: boolean; seen: string | null } = {
  mutation: {},
  letGo: false,
  seen: null,
};

export async function runContainerMutant(
  machine: Machine,
  mutation: ContainerMutation,
  how: ContainerRun,
  command: Args,
  input: string,
): Promise<Outcome> {
  Object.assign(current, { mutation, letGo: how.letGo, seen: null });
  makeHome(machine);
  const context = contextOf(machine);
  const plan = await planFor(context, { backend: 'docker', limits: { time: '60s', processes: '200', ...how.limits } });
  const paths = newTask(machine);
  const planned = await createRun(context, { ...plan, network: OFFLINE }, paths, 'mutant');
  const joined: SandboxSpec = { ...planned, network: { kind: 'gateway', listeners: [], reach: false } };
  const spec = (mutation.spec ?? same)(how.joined === true ? joined : planned);
  const name = `ags-mutant-${process.pid}-${process.hrtime.bigint()}`;
  const native = await nativeOptions(context, plan, spec, paths.runDir, name, { files: [], prefix: [], env: {} });
  if (plan.host.engine === null) throw new Error('there is no engine');
  const options = await containerOptions(context, native, plan.host.engine, plan.host.programs.perl, spec, name);
  // Root plays the user here, so what the user would have made must become the user's.
  if (machine.caller !== 'root') giveTo(join(machine.home, '.local/state'), machine.uid);
  mkdirSync(paths.root, { recursive: true });
  const [inFile, outFile] = [join(paths.root, 'in'), join(paths.root, 'out')];
  writeFileSync(inFile, input);
  const [stdin, stdout] = [openSync(inFile, 'r'), openSync(outFile, 'w')];
  try {
    const backend = (await mutable()).createContainer(options);
    const sandbox = await backend.start(spec, command, { stdin, stdout, stderr: stdout, terminal: null });
    await sandbox.done;
  } finally {
    closeSync(stdin);
    closeSync(stdout);
  }
  return { seen: current.seen, stdout: readFileSync(outFile, 'utf8') };
}

const loaded: { docker?: typeof import('../../../src/sandbox/container/container.ts') } = {};

/** The module that starts containers, with replaced ones below it: others may have loaded the real one already. */
async function mutable(): Promise<typeof import('../../../src/sandbox/container/container.ts')> {
  if (loaded.docker !== undefined) return loaded.docker;
  vi.resetModules();
  vi.doMock(import('../../../src/sandbox/container/container-args.ts'), async (original) => {
    const real = await original();
    return {
      ...real,
      agentArgs: (...given) => [...(current.mutation.agent ?? same)(real.agentArgs(...given))],
      pauseArgs: (...given) => [...(current.mutation.holder ?? same)(real.pauseArgs(...given))],
    };
  });
  vi.doMock(import('../../../src/sandbox/container/protection.ts'), async (original) => {
    const real = await original();
    return {
      ...real,
      unprotectedBy: (...args: Parameters<typeof real.unprotectedBy>) => {
        current.mutation.meanwhile?.(args[0]);
        current.seen ??= real.unprotectedBy(...args);
        return current.letGo ? null : current.seen;
      },
    };
  });
  vi.doMock(import('../../../src/sandbox/io/processes.ts'), async (original) => {
    const real = await original();
    return {
      ...real,
      isFiltered: (pid: number) => {
        current.mutation.earlier?.(pid);
        return real.isFiltered(pid);
      },
      networkOf: (pid: number) => {
        const network = real.networkOf(pid);
        if (network === 'shared') current.seen = 'it shared the net namespace of this machine';
        return current.letGo && network === 'shared' ? 'own' : network;
      },
    };
  });
  loaded.docker = await import('../../../src/sandbox/container/container.ts');
  return loaded.docker;
}

/** Without an option and its value. Every one of its kind that matches; there must be one. */
export function withoutOption(args: Args, option: string, matches: (value: string) => boolean = () => true): Args {
  return insteadOf(args, option, matches, () => []);
}

/** With another value for an option. */
export function withValue(
  args: Args,
  option: string,
  change: (value: string) => string,
  matches: (value: string) => boolean = () => true,
): Args {
  return insteadOf(args, option, matches, (value) => [option, change(value)]);
}

function insteadOf(
  args: Args,
  option: string,
  matches: (value: string) => boolean,
  put: (value: string) => readonly string[],
): Args {
  const changed: string[] = [];
  let found = false;
  for (let i = 0; i < args.length; i++) {
    const value = args[i + 1] ?? '';
    if (args[i] === option && matches(value)) {
      const there = put(value);
      found ||= there.join('\0') !== `${option}\0${value}`;
      changed.push(...there);
      i++;
    } else changed.push(args[i] ?? '');
  }
  if (!found) throw new Error(`there is no ${option} to change`);
  return changed;
}
