// run/inspection.ts: runs a program of ags over what a finished sandbox left behind, in a throw-away sandbox without network, and
// collects its output.
import { chownSync, existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { AgsError } from '../protocol/errors.ts';
import { hostPath, sandboxPath, type Mount, type WorkspaceMount } from '../protocol/spec.ts';
import { layerAt } from '../lib/files.ts';
import type { StoredTask } from '../store/tasks.ts';
import { readMachine } from '../sandbox/spec/machine.ts';
import { planInspection } from '../sandbox/spec/plan-inspection.ts';
import type { Sandbox } from '../sandbox/backend.ts';
import { PIPED_INPUT, runSandboxed } from './run-sandboxed.ts';
import { inspectMachine, type HostContext } from './host-context.ts';

const DEADLINE_MS = 10 * 60_000;

export interface Inspection {
  readonly argv: readonly string[];
  readonly input: Buffer;
  readonly env?: Readonly<Record<string, string>>;
  /** Reads the output as it comes; otherwise it is collected, up to `maxBytes`. */
  readonly consume?: (answer: NodeJS.ReadableStream) => Promise<void>;
  readonly maxBytes?: number;
  /** Exit codes that mean success. */
  readonly good?: readonly number[];
  /** Paths of the project that are shown as empty files. */
  readonly cover?: readonly string[];
  /** The inspection is killed after this long. */
  readonly deadlineMs?: number;
}

export type Inspect = (inspection: Inspection) => Promise<Buffer>;

interface Shown {
  readonly from: string;
  readonly to: string;
  readonly why: string;
}

/** `outDir` is mounted writable at INSIDE.out; nothing else is writable. `more` is mounted read-only. */
export async function openInspections(
  context: HostContext,
  task: StoredTask,
  outDir: string,
  more: readonly Shown[] = [],
): Promise<Inspect> {
  const { paths, run } = task;
  if (run.far !== undefined) await (await import('../sandbox/remote/volume.ts')).bringBack(paths.runDir);
  const workspace: WorkspaceMount =
    run.workspace === 'copy'
      ? { kind: 'copy', directory: hostPath(paths.copy), writable: false }
      : {
          kind: 'frozen-overlay',
          layers: (run.layers ?? [task.task.project]).map(layerAt),
          hidden: run.hidden,
          upper: hostPath(paths.upper),
        };
  const upper = run.workspace === 'overlay' ? paths.upper : null;
  return inspectionsOver(context, {
    id: task.task.id,
    // Files that came back from another machine are inspected here.
    backend: run.far === undefined ? run.backend : 'native',
    runDir: paths.runDir,
    user: run.user,
    at: task.task.project,
    workspace,
    upper,
    outDir,
    more,
  });
}

/** Inspections of the files that a task's sandbox left; they are mounted at `at`. */
export async function inspectionsOver(
  context: HostContext,
  over: {
    readonly id: string;
    readonly backend: StoredTask['run']['backend'];
    /** Run directory of that sandbox. */
    readonly runDir: string;
    readonly user: { readonly uid: number; readonly gid: number };
    readonly at: string;
    readonly workspace: WorkspaceMount;
    readonly upper: string | null;
    readonly outDir: string;
    readonly more: readonly Shown[];
  },
): Promise<Inspect> {
  const { user, outDir, runDir } = over;
  const host = await inspectMachine(
    context,
    { runtimeDir: context.env['XDG_RUNTIME_DIR'] ?? '' },
    over.backend ?? 'native',
  );
  mkdirSync(outDir, { recursive: true, mode: 0o755 });
  if (context.uid === 0) chownSync(outDir, user.uid, user.gid);
  const machine = readMachine({
    home: context.home,
    etc: ['ld.so.cache', 'ld.so.conf', 'ld.so.conf.d', 'alternatives'].filter((name) => existsSync(join('/etc', name))),
    toolDirs: [],
  });
  const inspectOnce: Inspect = async (inspection) => {
    const planned = planInspection({
      machine,
      user,
      project: over.at,
      workspace: over.workspace,
      upper: over.upper,
      out: outDir,
      env: inspection.env ?? {},
      limits: INSPECTION_LIMITS,
    });
    const spec = {
      ...planned,
      mounts: [
        ...planned.mounts,
        ...over.more.map(({ from, to, why }): Mount => ({
          kind: 'bind',
          from: hostPath(from),
          to: sandboxPath(to),
          writable: false,
          veil: 'no',
          why,
        })),
        ...(inspection.cover ?? []).map((path): Mount => ({
          kind: 'file',
          content: '',
          to: sandboxPath(join(over.at, path)),
          why: 'nothing may wait for it',
        })),
      ],
    };
    const deadline = AbortSignal.timeout(inspection.deadlineMs ?? DEADLINE_MS);
    let stderr = '';
    let answer: Promise<Collected> = Promise.resolve({ bytes: Buffer.alloc(0) });
    const { exitCode, ended } = await runSandboxed({
      context,
      plan: { host, overlays: false, namespaces: false },
      spec,
      command: inspection.argv,
      runDir,
      written: [outDir],
      id: over.id,
      openStdio: PIPED_INPUT,
      signal: deadline,
      onStart(sandbox) {
        sandbox.stderr?.on('data', (chunk: Buffer) => (stderr = (stderr + chunk.toString('utf8')).slice(-4096)));
        sandbox.stdin?.on('error', () => undefined);
        sandbox.stdin?.end(inspection.input);
        answer = collect(sandbox, inspection);
      },
    });
    const { bytes, refused, cutOff = exitCode > KILLED } = await answer;
    if (refused === undefined && (inspection.good ?? [0]).includes(exitCode)) return bytes;
    const why = ended ?? stderr.trim().split('\n').at(-1) ?? '';
    const error =
      refused ??
      new AgsError(
        'capture.refused',
        `The changes could not be read (${inspection.argv[0]} ended with ${exitCode}): ${why}`,
        {
          hint: `The files are still there: ${runDir}`,
        },
      );
    // An inspection that was killed from outside gave no verdict, which differs from a negative one.
    throw cutOff && ended === null && !deadline.aborted ? killedInspection(error) : error;
  };
  // Output that was consumed cannot be taken back, so that caller repeats the inspection itself.
  return (inspection) =>
    inspection.consume === undefined ? onceMore(() => inspectOnce(inspection)) : inspectOnce(inspection);
}

const KILLED = 128;
const DEATH_MS = 100;

function killedInspection(cause: unknown): AgsError {
  const message = cause instanceof Error ? cause.message : 'The changes could not be read.';
  const hint = cause instanceof AgsError ? cause.hint : undefined;
  return new AgsError('capture.refused', message, { hint, details: { killed: true }, cause });
}

/** An inspection killed by its files is killed each time; one killed from outside succeeds the second time. */
export async function onceMore<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof AgsError) || error.details['killed'] !== true) throw error;
    return work();
  }
}

// Enough for git over any project, and a bound on what a malicious file can make it do.
export const INSPECTION_LIMITS = {
  processes: 256,
  memoryBytes: 4 * 1024 ** 3,
  openFiles: 4096,
  fileBytes: 16 * 1024 ** 3,
  diskBytes: 16 * 1024 ** 3,
  tmpBytes: 64 * 1024 ** 2,
  cpuSeconds: 600,
  wallSeconds: null,
  cpus: null,
} as const;

interface Collected {
  readonly bytes: Buffer;
  /** Why the output was refused half-way; `cutOff`: the program had been killed by then. */
  readonly refused?: unknown;
  readonly cutOff?: boolean;
}

/** Reads the output to its end. A program whose output is refused half-way still waits for its reader, so it is killed. */
async function collect(sandbox: Sandbox, inspection: Inspection): Promise<Collected> {
  const { stdout } = sandbox;
  if (stdout === null) return { bytes: Buffer.alloc(0) };
  const chunks: Buffer[] = [];
  try {
    if (inspection.consume === undefined) await collectChunks(stdout, inspection.maxBytes ?? 256 * 1024 * 1024, chunks);
    else await inspection.consume(stdout);
    return { bytes: Buffer.concat(chunks) };
  } catch (refused) {
    // The output ends a moment before the process does.
    const code = await Promise.race([sandbox.done.catch(() => 0), sleep(DEATH_MS, 0)]);
    sandbox.kill();
    stdout.resume();
    return { bytes: Buffer.alloc(0), refused, cutOff: code > KILLED };
  }
}

async function collectChunks(stdout: NodeJS.ReadableStream, limit: number, chunks: Buffer[]): Promise<void> {
  let bytes = 0;
  for await (const chunk of stdout as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > limit) throw new AgsError('capture.refused', 'The list of changes is too long.');
    chunks.push(chunk);
  }
}
