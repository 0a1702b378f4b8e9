// run/inspection.ts: put a question to what a finished sandbox left behind, in a throw-away sandbox without network, and
// collect the answer.
import { chownSync, existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { AgsError } from '../protocol/errors.ts';
import { hostPath, sandboxPath, type Mount, type WorkspaceMount } from '../protocol/spec.ts';
import { layerAt } from '../lib/files.ts';
import type { StoredTask } from '../store/tasks.ts';
import { readMachine } from '../sandbox/spec/machine.ts';
import { planQuestion } from '../sandbox/spec/plan-inspection.ts';
import { openBackend } from './open-backend.ts';
import { inspectWorld, type World } from './host-context.ts';

const DEADLINE_MS = 10 * 60_000;

export interface Question {
  readonly argv: readonly string[];
  readonly input: Buffer;
  readonly env?: Readonly<Record<string, string>>;
  /** Takes the answer while it comes; otherwise it is collected, up to `maxBytes`. */
  readonly consume?: (answer: NodeJS.ReadableStream) => Promise<void>;
  readonly maxBytes?: number;
  /** Exit codes that are an answer. */
  readonly good?: readonly number[];
  /** Paths of the project that are shown as empty files. */
  readonly cover?: readonly string[];
  /** It is given up after this long. */
  readonly deadlineMs?: number;
}

export type Ask = (question: Question) => Promise<Buffer>;

interface Shown {
  readonly from: string;
  readonly to: string;
  readonly why: string;
}

/** `outDir` is mounted writable at INSIDE.out; nothing else is. `more` is shown read-only besides. */
export async function openQuestions(
  world: World,
  task: StoredTask,
  outDir: string,
  more: readonly Shown[] = [],
): Promise<Ask> {
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
  return questionsOver(world, {
    id: task.task.id,
    // What came back from another machine is looked at here.
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

/** About what some sandbox of a task left; it is shown at `at`. */
export async function questionsOver(
  world: World,
  over: {
    readonly id: string;
    readonly backend: StoredTask['run']['backend'];
    /** Of the sandbox that left it. */
    readonly runDir: string;
    readonly user: { readonly uid: number; readonly gid: number };
    readonly at: string;
    readonly workspace: WorkspaceMount;
    readonly upper: string | null;
    readonly outDir: string;
    readonly more: readonly Shown[];
  },
): Promise<Ask> {
  const { user, outDir, runDir } = over;
  const host = await inspectWorld(world, { runtimeDir: world.env['XDG_RUNTIME_DIR'] ?? '' }, over.backend ?? 'native');
  mkdirSync(outDir, { recursive: true, mode: 0o755 });
  if (world.uid === 0) chownSync(outDir, user.uid, user.gid);
  const machine = readMachine({
    home: world.home,
    etc: ['ld.so.cache', 'ld.so.conf', 'ld.so.conf.d', 'alternatives'].filter((name) => existsSync(join('/etc', name))),
    toolDirs: [],
  });
  const askOnce: Ask = async (question) => {
    const planned = planQuestion({
      machine,
      user,
      project: over.at,
      workspace: over.workspace,
      upper: over.upper,
      out: outDir,
      env: question.env ?? {},
      limits: QUESTION_LIMITS,
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
        ...(question.cover ?? []).map((path): Mount => ({
          kind: 'file',
          content: '',
          to: sandboxPath(join(over.at, path)),
          why: 'nothing may wait for it',
        })),
      ],
    };
    const backend = await openBackend(world, { host, overlays: false, namespaces: false }, spec, runDir, over.id, {
      files: [],
      prefix: [],
      env: {},
    });
    const sandbox = await backend.start(spec, question.argv, {
      stdin: 'pipe',
      stdout: 'pipe',
      stderr: 'pipe',
      terminal: null,
    });
    let late = false;
    const end = (): void => {
      late = true;
      sandbox.kill();
    };
    const deadline = setTimeout(end, question.deadlineMs ?? DEADLINE_MS);
    try {
      let stderr = '';
      sandbox.stderr?.on('data', (chunk: Buffer) => (stderr = (stderr + chunk.toString('utf8')).slice(-4096)));
      sandbox.stdin?.on('error', () => undefined);
      sandbox.stdin?.end(question.input);
      const [bytes, exitCode] = await Promise.all([collect(sandbox.stdout, question), sandbox.done]);
      if (!(question.good ?? [0]).includes(exitCode))
        throw new AgsError(
          'capture.refused',
          `The changes could not be read (${question.argv[0]} ended with ${exitCode}): ${stderr.trim().split('\n').at(-1) ?? ''}`,
          { hint: `They are still there: ${runDir}` },
        );
      return bytes;
    } catch (error) {
      // Whoever was killed has said nothing, which is something else than no.
      const code = await Promise.race([sandbox.done.catch(() => 0), sleep(DEATH_MS, 0)]);
      throw !late && code > KILLED ? killedQuestion(error) : error;
    } finally {
      clearTimeout(deadline);
      // An answer that was refused half-way leaves a program that waits for somebody to read on.
      sandbox.kill();
      sandbox.stdout?.resume();
      await sandbox.done.catch(() => undefined);
    }
  };
  // What was taken while it came cannot be taken back: whoever takes it asks again.
  return (question) => (question.consume === undefined ? onceMore(() => askOnce(question)) : askOnce(question));
}

const KILLED = 128;
/** An answer ends a moment before who gave it. */
const DEATH_MS = 100;

function killedQuestion(cause: unknown): AgsError {
  const message = cause instanceof Error ? cause.message : 'The changes could not be read.';
  const hint = cause instanceof AgsError ? cause.hint : undefined;
  return new AgsError('capture.refused', message, { hint, details: { killed: true }, cause });
}

/** Something in the files may have ended it, or somebody outside: the former does so each time. */
export async function onceMore<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof AgsError) || error.details['killed'] !== true) throw error;
    return work();
  }
}

// Enough for git over any project, and an end for whatever a strange file might make it do.
export const QUESTION_LIMITS = {
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

async function collect(stream: NodeJS.ReadableStream | null, question: Question): Promise<Buffer> {
  if (stream === null) return Buffer.alloc(0);
  if (question.consume !== undefined) {
    await question.consume(stream);
    return Buffer.alloc(0);
  }
  const chunks: Buffer[] = [];
  let bytes = 0;
  const limit = question.maxBytes ?? 256 * 1024 * 1024;
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > limit) throw new AgsError('capture.refused', 'The list of changes is longer than any real one.');
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
