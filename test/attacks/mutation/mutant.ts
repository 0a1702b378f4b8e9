// test/attacks/mutation/mutant.ts: the sandbox that `ags exec` would start, from the same functions, with one protection removed.
import { spawn } from 'node:child_process';
import { closeSync, existsSync, mkdirSync, openSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { vi } from 'vitest';
import type { ConfigFlags } from '../../../src/config/effective.ts';
import type { SandboxSpec } from '../../../src/protocol/spec.ts';
import { planNative } from '../../../src/sandbox/native/native.ts';
import { DESCRIPTORS } from '../../../src/sandbox/io/descriptors.ts';
import type { Launch } from '../../../src/sandbox/native/launch.ts';
import { prepareRunDir } from '../../../src/sandbox/io/prepare-mounts.ts';
import { seccompFilter } from '../../../src/sandbox/spec/seccomp.ts';
import { taskPaths, type TaskPaths } from '../../../src/store/layout.ts';
import { OFFLINE } from '../../../src/run/network/plan-network.ts';
import { createRun } from '../../../src/run/create-run.ts';
import type { RunPlan } from '../../../src/run/run-plan.ts';
import { nativeOptions } from '../../../src/run/native-options.ts';
import type { HostContext } from '../../../src/run/host-context.ts';
import { giveTo, type Machine, type Result } from '../../harness.ts';
import { contextOf } from '../own-context.ts';
import { feed, identity } from '../run-inside.ts';
import type { Victims } from '../victims.ts';

/** The changes of a mutant: each function gets the real value and returns the one that is used. */
export interface Mutation {
  readonly plan?: (plan: RunPlan) => RunPlan;
  readonly spec?: (spec: SandboxSpec) => SandboxSpec;
  readonly launch?: (launch: Launch) => Launch;
  readonly filter?: (filter: Buffer) => Buffer;
  /** The launcher inherits the caller's environment. */
  readonly callerEnv?: boolean;
  /** The launcher inherits a descriptor that the caller left open. */
  readonly descriptor?: boolean;
}

export interface Prepared {
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

export async function runMutant(
  machine: Machine,
  victims: Victims,
  mutation: Mutation,
  command: readonly string[],
  input: string,
): Promise<Result> {
  const { argv, env } = await prepareMutant(machine, mutation, command);
  const [file = '', ...args] = argv;
  const secret = openSync(victims.secretFile, 'r');
  const ignored = Array<'ignore'>(6).fill('ignore');
  const child = spawn(file, args, {
    cwd: '/',
    env: mutation.callerEnv === true ? { ...machine.env, ...victims.env, ...env, PERL5OPT: '' } : { ...env },
    ...identity(machine),
    detached: true,
    stdio: ['pipe', 'pipe', 'pipe', ...(mutation.descriptor === true ? [...ignored, secret] : [])],
  });
  closeSync(secret);
  const timer = setTimeout(() => child.kill('SIGKILL'), 110_000);
  return feed(child, input).finally(() => clearTimeout(timer));
}

/** Prepares everything but the start: running `argv` starts the sandbox. */
export async function prepareMutant(
  machine: Machine,
  mutation: Mutation,
  command: readonly string[],
): Promise<Prepared> {
  const context = contextOf(machine);
  makeHome(machine);
  // Listeners need a gateway; the attacks on them are in listeners.test.ts.
  const plan = (mutation.plan ?? same)({ ...withoutGroup(await planFor(context)), network: OFFLINE });
  const paths = newTask(machine);
  const spec = (mutation.spec ?? same)(await createRun(context, plan, paths, 'mutant'));
  const options = await nativeOptions(context, plan, spec, paths.runDir, 'mutant', { files: [], prefix: [], env: {} });
  const launch = (mutation.launch ?? same)(planNative(options, spec, command, { terminal: null, stdin: 0 }));
  prepareRunDir(options, spec, launch);
  const given = { args: join(paths.root, 'args'), seccomp: join(paths.root, 'filter'), go: join(paths.root, 'go') };
  writeFileSync(given.args, launch.bwrapArgs.map((arg) => `${arg}\0`).join(''));
  writeFileSync(given.seccomp, (mutation.filter ?? same)(seccompFilter(options.arch, spec.kernel)));
  writeFileSync(given.go, 'go\n');
  // Root acts as the user here, so files that the user would have created must belong to the user. As root, the run owns them.
  if (machine.caller !== 'root')
    for (const dir of ['.local/state', '.cache']) giveTo(join(machine.home, dir), machine.uid);
  const { args, seccomp, status, go } = DESCRIPTORS;
  const open = `exec ${args}< "$1" ${seccomp}< "$2" ${go}< "$3" ${status}> /dev/null; shift 3; exec "$@"`;
  const argv = ['/bin/sh', '-c', open, 'sh', given.args, given.seccomp, given.go, ...launch.argv];
  return { argv, env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', AGS_RUN: 'mutant' } };
}

export const same = <T>(value: T): T => value;

/** Creates the directories and the git settings that a run expects in a home. */
export function makeHome(machine: Machine): void {
  for (const dir of ['.local', '.local/state', '.cache']
    .map((name) => join(machine.home, name))
    .filter((path) => !existsSync(path))) {
    mkdirSync(dir, { mode: 0o755 });
    giveTo(dir, machine.uid);
  }
  // git refuses repositories of other users, and here root reads the user's.
  if (!existsSync(join(machine.home, '.gitconfig')))
    writeFileSync(join(machine.home, '.gitconfig'), '[safe]\n\tdirectory = *\n');
}

export function newTask({ stateDir }: Machine): TaskPaths {
  mkdirSync(join(stateDir, 'tasks'), { recursive: true, mode: 0o700 });
  const paths = taskPaths(stateDir, `mutant-${process.hrtime.bigint()}`);
  mkdirSync(paths.root);
  return paths;
}

/**
 * Plans as `ags exec` does, with a fixed answer to what this machine offers: finding out starts a sandbox, which root, acting as the
 * user, cannot do.
 */
export async function planFor(context: HostContext, flags: ConfigFlags = {}): Promise<RunPlan> {
  vi.doMock(import('../../../src/run/readiness.ts'), () => ({
    workspaceKind: () => Promise.resolve({ kind: 'overlay', why: '', overlays: true, namespaces: true }),
  }));
  const { planRun } = await import('../../../src/run/plan-run.ts');
  return planRun(context, { workspace: 'overlay', ...flags });
}

/** Without a control group: no attempt of the tables depends on one, and other tests cover those that do. */
function withoutGroup(plan: RunPlan): RunPlan {
  const cgroup = { kind: 'none', why: 'a mutant has none' } as const;
  return { ...plan, host: { ...plan.host, cgroupPlan: cgroup, limitHost: { ...plan.host.limitHost, cgroup } } };
}

/** Removes every matching option of bubblewrap with the given number of values; there must be one. */
export function without(
  launch: Launch,
  option: string,
  values = 0,
  matches: (values: readonly string[]) => boolean = () => true,
): Launch {
  const kept: string[] = [];
  for (let i = 0; i < launch.bwrapArgs.length; i++) {
    const rest = launch.bwrapArgs.slice(i + 1, i + 1 + values);
    if (launch.bwrapArgs[i] === option && matches(rest)) i += values;
    else kept.push(launch.bwrapArgs[i] ?? '');
  }
  if (kept.length === launch.bwrapArgs.length) throw new Error(`there is no ${option} to take out`);
  return { ...launch, bwrapArgs: kept };
}

/** Replaces a sequence of arguments; it must be there. */
export function instead(launch: Launch, from: readonly string[], to: readonly string[]): Launch {
  const at = launch.bwrapArgs.findIndex((_, i) => from.every((word, k) => launch.bwrapArgs[i + k] === word));
  if (at < 0) throw new Error(`there is no ${from.join(' ')} to replace`);
  return {
    ...launch,
    bwrapArgs: [...launch.bwrapArgs.slice(0, at), ...to, ...launch.bwrapArgs.slice(at + from.length)],
  };
}
