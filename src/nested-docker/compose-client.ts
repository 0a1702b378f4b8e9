// nested-docker/compose-client.ts: runs this machine's compose client in a sandbox: it reads the project's files and talks to nested Docker.
// Invariant: no program on the host reads a compose file. The client sees the project as it was at the start, read-only, and has one
// listener, which leads to the task's engine; while planning it has none.
import { existsSync, mkdirSync } from 'node:fs';
import { basename, join } from 'node:path';
import type { Server, Socket } from 'node:net';
import { AgsError } from '../protocol/errors.ts';
import { hostPath, sandboxPath, type Mount, type SandboxSpec, type WorkspaceMount } from '../protocol/spec.ts';
import type { ComposeConfig } from '../config/effective.ts';
import { layerAt } from '../lib/files.ts';
import { findProgram, installCommand } from '../sandbox/programs.ts';
import { readMachine } from '../sandbox/spec/machine.ts';
import { planInspection } from '../sandbox/spec/plan-inspection.ts';
import type { TaskPaths } from '../store/layout.ts';
import { DOCKER_PORT } from '../run/network/plan-network.ts';
import type { PlannedCompose } from '../run/planned-services.ts';
import type { RunPlan } from '../run/run-plan.ts';
import { INSPECTION_LIMITS } from '../run/inspection.ts';
import { runSandboxed } from '../run/run-sandboxed.ts';
import type { HostContext } from '../run/host-context.ts';

/** A volume of nested Docker. Containers and client mount it at the same path, so that paths in compose files mean the same to both. */
export const PROJECT_VOLUME = 'ags-project';
const VOLUME_DIR = `/var/lib/docker/volumes/${PROJECT_VOLUME}/_data`;

/** The directory keeps its own name, because compose names containers after it. */
export function projectInside({ project }: Pick<RunPlan, 'project'>): string {
  return join(VOLUME_DIR, basename(project.root));
}

export const OVERRIDE_INSIDE = '/run/ags/override.yaml';

/** Where distributions and Docker install version 2, a plug-in; version 1 is an ordinary program. */
const PLUGIN_DIRS = ['/usr/local/lib', '/usr/local/libexec', '/usr/lib', '/usr/libexec'].map((dir) =>
  join(dir, 'docker/cli-plugins'),
);

export function findComposeClient(): string {
  const found = findProgram('docker-compose', PLUGIN_DIRS) ?? findProgram('docker-compose');
  if (found !== null) return found;
  throw new AgsError('service.unavailable', 'Compose files need Docker Compose on this machine.', {
    hint: `Install it: ${installCommand(['docker-compose'])}\nOr without them: --no-compose`,
  });
}

/** The text that `ags plan` shows. */
export function describeCompose({ files, services, profiles }: ComposeConfig): string {
  const what = files.length === 0 ? "the project's compose files" : files.join(', ');
  const only = services.length === 0 ? '' : `, only ${services.join(', ')}`;
  const on = profiles.length === 0 ? '' : `, with the profiles ${profiles.join(', ')}`;
  return `${what}${only}${on}, started in nested Docker by ${findComposeClient()}, which runs in a sandbox`;
}

/** No service can have this name. */
export function clientDir({ services }: Pick<TaskPaths, 'services'>): string {
  return join(services, '.compose');
}

export interface ClientRun {
  readonly context: HostContext;
  readonly plan: RunPlan;
  readonly task: string;
  /** A directory for the files of this sandbox; created here. */
  readonly dir: string;
  readonly compose: Pick<PlannedCompose, 'layers' | 'hidden' | 'env' | 'override'>;
  readonly argv: readonly string[];
  /** Handles connections to the listener of the engine; null: no listener. */
  readonly docker: ((socket: Socket) => void) | null;
  readonly onOutput: (stream: 'stdout' | 'stderr', chunk: Buffer) => void | Promise<void>;
  readonly signal: AbortSignal;
}

/** Returns the client's exit code. The client loads what the project names, so it gets the same sandbox as the project's own programs. */
export async function runClient(run: ClientRun): Promise<number> {
  const { context, plan, signal, dir } = run;
  const spec = await describeClient(run);
  signal.throwIfAborted();
  const reading: Promise<void>[] = [];
  const { exitCode, ended } = await runSandboxed({
    context,
    plan,
    id: run.task,
    group: `${run.task}-compose`,
    spec,
    runDir: join(dir, 'run'),
    written: [join(dir, 'upper')],
    signal,
    network: {
      onListener: (_name, listener) =>
        void (listener as Server).on('connection', (socket: Socket) => run.docker?.(socket)),
    },
    command: run.argv,
    onStart(sandbox) {
      const read = async (name: 'stdout' | 'stderr'): Promise<void> => {
        for await (const chunk of (sandbox[name] ?? []) as AsyncIterable<Buffer>) await run.onOutput(name, chunk);
      };
      reading.push(read('stdout'), read('stderr'));
      // Both are awaited below.
      for (const one of reading) one.catch(() => sandbox.kill());
    },
  });
  await Promise.all(reading);
  signal.throwIfAborted();
  if (ended !== null) throw new AgsError('service.failed', `The compose client was ended. ${ended}`);
  return exitCode;
}

async function describeClient({ plan, context, dir, compose, docker }: ClientRun): Promise<SandboxSpec> {
  const { user } = plan;
  for (const one of [dir, join(dir, 'run'), join(dir, 'upper')]) mkdirSync(one, { recursive: true, mode: 0o755 });
  const planned = planInspection({
    machine: readMachine({
      home: context.home,
      etc: ['ld.so.cache', 'ld.so.conf', 'ld.so.conf.d', 'alternatives'].filter((name) =>
        existsSync(join('/etc', name)),
      ),
      toolDirs: [],
    }),
    user,
    project: projectInside(plan),
    workspace: await workspaceOf(plan, dir, compose),
    upper: null,
    // The client only prints; it writes nothing on this machine.
    out: null,
    env: {
      ...compose.env,
      LC_ALL: 'C.UTF-8',
      ...(docker === null ? {} : { DOCKER_HOST: `tcp://127.0.0.1:${DOCKER_PORT}` }),
    },
    limits: INSPECTION_LIMITS,
  });
  const override: Mount[] =
    compose.override === null
      ? []
      : [
          {
            kind: 'file',
            content: compose.override,
            to: sandboxPath(OVERRIDE_INSIDE),
            why: "the user's own compose file",
          },
        ];
  return {
    ...planned,
    mounts: [...planned.mounts, ...override],
    network:
      docker === null
        ? { kind: 'loopback' }
        : {
            kind: 'gateway',
            listeners: [{ name: 'docker', protocol: 'tcp', address: '127.0.0.1', port: DOCKER_PORT }],
            reach: false,
          },
  };
}

async function workspaceOf(
  plan: RunPlan,
  dir: string,
  { layers, hidden }: Pick<PlannedCompose, 'layers' | 'hidden'>,
): Promise<WorkspaceMount> {
  if (plan.overlays)
    return { kind: 'frozen-overlay', layers: layers.map(layerAt), hidden, upper: hostPath(join(dir, 'upper')) };
  const copy = join(dir, 'copy');
  if (!existsSync(copy)) {
    const { copyLayers } = await import('../workspace/copy-layers.ts');
    await copyLayers({ layers, to: copy, hidden });
  }
  return { kind: 'copy', directory: hostPath(copy), writable: false };
}
