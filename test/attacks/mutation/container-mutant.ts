// test/attacks/mutation/container-mutant.ts: the container that `ags exec` would start, from the same functions, with one protection
// removed from the engine's command lines. The check from outside can be told to ignore it.
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

/** The changes of a mutant: each function gets the real value and returns the one that is used. */
export interface ContainerMutation {
  readonly agent?: (args: Args) => Args;
  readonly pause?: (args: Args) => Args;
  readonly spec?: (spec: SandboxSpec) => SandboxSpec;
  /** Called with its first process, just before the check from outside and during it. */
  readonly earlier?: (pid: number) => void;
  readonly meanwhile?: (pid: number) => void;
}

export interface ContainerRun {
  /** Starts the command even if the check from outside fails. */
  readonly letGo: boolean;
  readonly limits?: Readonly<Record<string, string>> | undefined;
  /** Joins the network of a pause container. */
  readonly joined?: boolean | undefined;
}

export interface Outcome {
  /** The protection that the check from outside finds missing; null: none. */
  readonly seen: string | null;
  readonly stdout: string;
}

/** The mutant that is being started; the replaced modules read it. */
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
  // Root acts as the user here, so files that the user would have created must belong to the user.
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

/** The module that starts containers, with replaced imports, even if the real one was loaded before. */
async function mutable(): Promise<typeof import('../../../src/sandbox/container/container.ts')> {
  if (loaded.docker !== undefined) return loaded.docker;
  vi.resetModules();
  vi.doMock(import('../../../src/sandbox/container/container-args.ts'), async (original) => {
    const real = await original();
    return {
      ...real,
      agentArgs: (...given) => [...(current.mutation.agent ?? same)(real.agentArgs(...given))],
      pauseArgs: (...given) => [...(current.mutation.pause ?? same)(real.pauseArgs(...given))],
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

/** Removes every matching option with its value; there must be one. */
export function withoutOption(args: Args, option: string, matches: (value: string) => boolean = () => true): Args {
  return insteadOf(args, option, matches, () => []);
}

/** Changes the value of every matching option; there must be one. */
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
