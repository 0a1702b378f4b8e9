// run/test-sandbox.ts: two test sandboxes over one kind of workspace, started like `ags exec`: a complete one that reports from
// inside what is in force, and one whose filter allows everything, which shows what is refused without the filter.
// Invariant: it returns only when both have ended, however each of them ends.
import { chmodSync, closeSync, existsSync, lstatSync, mkdirSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { AgsError } from '../protocol/errors.ts';
import type { SandboxSpec } from '../protocol/spec.ts';
import { run } from '../lib/process/process.ts';
import {
  INSIDE,
  judge,
  ownNamespaces,
  REFUSED_BY_LIMIT,
  WITHOUT_FILTER,
  HIDDEN,
  isUntouched,
} from '../sandbox/checks/evidence.ts';
import { prlimitArgv } from '../sandbox/watch/limits.ts';
import { planNative } from '../sandbox/native/native.ts';
import { SYSTEM_PATH } from '../sandbox/io/descriptors.ts';
import { prepareRunDir } from '../sandbox/io/prepare-mounts.ts';
import { assemble } from '../sandbox/spec/seccomp.ts';
import { taskPaths, type TaskPaths } from '../store/layout.ts';
import { createRun } from './create-run.ts';
import type { RunPlan } from './run-plan.ts';
import { nativeOptions } from './native-options.ts';
import { runSandboxed } from './run-sandboxed.ts';
import type { HostContext } from './host-context.ts';

/** The directory and plan of a test. */
export interface TestSetup {
  readonly context: HostContext;
  /** Used only by the probe; holds the project, and a file outside of it that must not be visible. */
  readonly dir: string;
  readonly outsider: string;
  readonly plan: RunPlan;
}

export interface Outcome {
  /** Protections that were not in force, each as a part of a sentence about the sandbox ("it ..."). */
  readonly lacking: readonly string[];
  /** null: it started and its workspace works. Otherwise the error output of its programs. */
  readonly said: string | null;
  /** From the decision to start until the command's first output. */
  readonly startMs: number;
}

type Workspace = RunPlan['workspace'];

export async function tryWorkspace(setup: TestSetup, workspace: Workspace): Promise<Outcome> {
  const running = [tryComplete(setup, workspace), tryUnfiltered(setup, workspace)] as const;
  // The directory must not be removed while one of them still works in it.
  await Promise.allSettled(running);
  for (const name of [workspace, `${workspace}-unfiltered`]) easeRemoval(taskPaths(setup.dir, name));
  const complete = await running[0];
  // The same failure stopped the other one as well.
  if (complete.said !== null) return complete;
  const unfiltered = await running[1];
  return { ...complete, lacking: [...complete.lacking, ...unfiltered.lacking], said: unfiltered.said };
}

// Generous: many may start at once on a small machine.
const GIVE_UP_MS = 60_000;

async function tryComplete(setup: TestSetup, workspace: Workspace): Promise<Outcome> {
  const { host } = setup.plan;
  const { spec, paths } = await create(setup, workspace, workspace);
  const answer = await runTest(setup, spec, paths);
  const { report, said, startMs } = answer;
  if (said !== null) return { lacking: [], said, startMs };
  if (answer.lacking !== undefined) return { lacking: [answer.lacking], said: null, startMs };
  const { lacking, workspace: fault } = judge(report, {
    uid: spec.user.uid,
    limits: prlimitArgv(spec.limits, host.limitHost).filter((arg) => arg.includes('=')),
    readOnly: readOnlyPlaces(spec, host.engine !== null),
    outside: host.engine === null || host.engine.rootless ? ownNamespaces() : withoutUser(ownNamespaces()),
  });
  const changed = isUntouched(setup.plan.project.root) ? [] : ["it changed the project's own files"];
  const unmarked = workspace === 'overlay' && !isWhiteout(join(paths.upper, 'gone'));
  return {
    lacking: [...lacking, ...changed],
    said: fault ?? (unmarked ? 'a deletion left no mark in the upper layer' : null),
    startMs,
  };
}

async function runTest(
  { context, plan, outsider }: TestSetup,
  spec: SandboxSpec,
  paths: TaskPaths,
): Promise<{ report: string; said: string | null; startMs: number; lacking?: string }> {
  const errors = join(paths.root, 'errors');
  const stderr = openSync(errors, 'w');
  const began = performance.now();
  let report = '';
  let startMs = 0;
  try {
    await runSandboxed({
      context,
      plan,
      spec,
      command: ['/bin/sh', '-c', INSIDE, 'sh', outsider, ...HIDDEN],
      runDir: paths.runDir,
      written: [],
      id: 'probe',
      openStdio: async () => ({
        stdio: { stdin: 'ignore', stdout: 'pipe', stderr, terminal: null },
        close: async () => undefined,
      }),
      signal: AbortSignal.timeout(GIVE_UP_MS),
      onStart(sandbox) {
        sandbox.stdout?.on('data', (chunk: Buffer) => {
          startMs ||= performance.now() - began;
          report += chunk.toString('utf8');
        });
      },
    });
    // A sandbox without any output could not start its program: bwrap's error output tells why.
    const complaint = report === '' ? readFileSync(errors, 'utf8') : '';
    return { report, said: complaint === '' ? null : complaint, startMs };
  } catch (error) {
    // Verified from outside before the command ran, so nothing inside was asked.
    const lacking = error instanceof AgsError ? error.details['lacking'] : undefined;
    if (typeof lacking === 'string') return { report, said: null, startMs, lacking };
    if (error instanceof AgsError && error.code === 'backend.unprotected') return { report, said: null, startMs };
    if (error instanceof AgsError) return { report, said: readFileSync(errors, 'utf8') || error.message, startMs };
    // The layers could not be prepared, which may be a fault of overlays alone.
    if (isSystemError(error)) return { report, said: error.message, startMs };
    throw error;
  } finally {
    closeSync(stderr);
  }
}

/**
 * User namespaces are refused twice, by the filter and by a limit of the kernel. The filter hides whether the limit works, so this
 * sandbox has none.
 */
async function tryUnfiltered(setup: TestSetup, workspace: Workspace): Promise<Outcome> {
  const { host } = setup.plan;
  if (host.engine !== null) return { lacking: [], said: null, startMs: 0 };
  const { spec, paths } = await create(setup, workspace, `${workspace}-unfiltered`);
  const options = await nativeOptions(setup.context, setup.plan, spec, paths.runDir, 'probe', {
    files: [],
    prefix: [],
    env: {},
  });
  const launch = planNative(options, spec, ['/bin/sh', '-c', WITHOUT_FILTER], { terminal: null, stdin: 'ignore' });
  prepareRunDir(options, spec, launch);
  const [args, filter] = [join(paths.root, 'args'), join(paths.root, 'filter')];
  writeFileSync(args, launch.bwrapArgs.map((arg) => `${arg}\0`).join(''));
  writeFileSync(filter, assemble(host.arch, {}));
  const open = 'exec 3< "$1" 4< "$2" 5> /dev/null 6<< end\ngo\nend\nshift 2; exec "$@"';
  const { stdout, stderr } = await run(['/bin/sh', '-c', open, 'sh', args, filter, ...launch.argv], {
    cwd: '/',
    env: { PATH: SYSTEM_PATH, AGS_RUN: 'probe' },
    timeoutMs: GIVE_UP_MS,
  });
  const answer = stdout.toString('utf8');
  // Until the command has started, the output is the launcher's.
  if (!answer.startsWith('inside\n')) return { lacking: [], said: stderr, startMs: 0 };
  const refused = REFUSED_BY_LIMIT.test(answer);
  return {
    lacking: refused ? [] : ['user namespaces were forbidden by its system call filter alone'],
    said: null,
    startMs: 0,
  };
}

async function create(
  setup: TestSetup,
  workspace: Workspace,
  name: string,
): Promise<{ spec: SandboxSpec; paths: TaskPaths }> {
  const paths = taskPaths(setup.dir, name);
  mkdirSync(paths.root, { recursive: true });
  const spec = await createRun(setup.context, { ...setup.plan, workspace }, paths, 'probe');
  // The probe answers no listeners.
  return { paths, spec: { ...spec, network: { kind: 'loopback' } } };
}

/** A container of root shares the user namespace of its engine, and no process inside may create another one. */
function withoutUser(all: ReturnType<typeof ownNamespaces>): Partial<ReturnType<typeof ownNamespaces>> {
  return Object.fromEntries(Object.entries(all).filter(([name]) => name !== 'user'));
}

/** The /dev of a container belongs to root, and no process inside is root. */
function readOnlyPlaces({ mounts }: SandboxSpec, container: boolean): string[] {
  const bound = mounts.filter((mount) => mount.kind === 'file' || (mount.kind === 'bind' && !mount.writable));
  return ['/', ...(container ? [] : ['/dev']), ...bound.map(({ to }) => to)];
}

function isWhiteout(path: string): boolean {
  const stat = lstatSync(path, { throwIfNoEntry: false });
  return stat?.isCharacterDevice() === true && stat.rdev === 0;
}

/** The kernel creates this directory without any permission; removing the tree is much slower if it has to find out. */
function easeRemoval({ work }: TaskPaths): void {
  if (existsSync(join(work, 'work'))) chmodSync(join(work, 'work'), 0o700);
}

export function isSystemError(error: unknown): error is Error & { code: string; syscall: string } {
  return error instanceof Error && 'code' in error && 'syscall' in error;
}
