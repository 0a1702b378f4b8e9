// nested-docker/compose-client.ts: the compose client of this machine, in a sandbox: it reads the project's files and speaks to the task's engine.
// Invariant: no program of the host reads a compose file. The client sees the project as it was at the start, read-only, and has one
// door, to the engine of the task; while a plan is made it has none.
import { existsSync, mkdirSync } from 'node:fs';
import { basename, join } from 'node:path';
import type { Server, Socket } from 'node:net';
import { AgsError } from '../protocol/errors.ts';
import { hostPath, sandboxPath, type Mount, type SandboxSpec, type WorkspaceMount } from '../protocol/spec.ts';
import type { ComposeConfig } from '../config/effective.ts';
import { layerAt } from '../lib/files.ts';
import { findProgram, installCommand } from '../sandbox/checks/host.ts';
import { readMachine } from '../sandbox/spec/machine.ts';
import { planQuestion } from '../sandbox/spec/plan-inspection.ts';
import type { TaskPaths } from '../store/layout.ts';
import { DOCKER_PORT } from '../run/network/plan-network.ts';
import type { PlannedCompose } from '../run/planned-services.ts';
import type { RunPlan } from '../run/plan-run.ts';
import { QUESTION_LIMITS } from '../run/inspection.ts';
import { NO_SIGNALS, supervise } from '../run/supervise.ts';
import type { World } from '../run/host-context.ts';

/** A volume of the engine, and where it and the client have it: a path that a compose file names means the same to both. */
export const PROJECT_VOLUME = 'ags-project';
const VOLUME_DIR = `/var/lib/docker/volumes/${PROJECT_VOLUME}/_data`;

/** Under its own name: compose calls what it makes by it. */
export function projectInside({ project }: Pick<RunPlan, 'project'>): string {
  return join(VOLUME_DIR, basename(project.root));
}

export const OVERRIDE_INSIDE = '/run/ags/override.yaml';

/** Where distributions and Docker itself put the second version; the first is a program like any other. */
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

/** For people. */
export function describeCompose({ files, services, profiles }: ComposeConfig): string {
  const what = files.length === 0 ? "the project's compose files" : files.join(', ');
  const only = services.length === 0 ? '' : `, of them ${services.join(', ')}`;
  const on = profiles.length === 0 ? '' : `, with the profiles ${profiles.join(', ')}`;
  return `${what}${only}${on}, brought up in that engine by ${findComposeClient()}, which runs in a sandbox`;
}

/** No service can be called like it. */
export function clientDir({ services }: Pick<TaskPaths, 'services'>): string {
  return join(services, '.compose');
}

export interface ClientRun {
  readonly world: World;
  readonly plan: RunPlan;
  readonly task: string;
  /** A directory of ours for what this sandbox needs; made here. */
  readonly dir: string;
  readonly compose: Pick<PlannedCompose, 'layers' | 'hidden' | 'env' | 'override'>;
  readonly argv: readonly string[];
  /** Takes whoever comes to the engine's door; null: there is none. */
  readonly docker: ((socket: Socket) => void) | null;
  readonly onOutput: (stream: 'stdout' | 'stderr', chunk: Buffer) => void | Promise<void>;
  readonly signal: AbortSignal;
}

/** Its exit code. It loads what the project names, so it is held like a program of the project's. */
export async function runClient(run: ClientRun): Promise<number> {
  const { world, plan, signal, dir } = run;
  const spec = await describeClient(run);
  signal.throwIfAborted();
  let kill = (): void => undefined;
  const over = (): void => kill();
  signal.addEventListener('abort', over, { once: true });
  const reading: Promise<void>[] = [];
  try {
    const at = (name: string): string => join(dir, name);
    const { exitCode, ended } = await supervise({
      world,
      plan,
      id: run.task,
      group: `${run.task}-compose`,
      spec,
      paths: { root: dir, runDir: at('run'), upper: at('upper'), home: at('home'), copy: at('copy'), git: at('git') },
      signals: NO_SIGNALS,
      network: {
        onDoor: (_name, door) => void (door as Server).on('connection', (socket: Socket) => run.docker?.(socket)),
        started: () => undefined,
      },
      request: {
        command: run.argv,
        openStdio: async () => ({
          stdio: { stdin: 'ignore', stdout: 'pipe', stderr: 'pipe', terminal: null },
          close: async () => undefined,
        }),
      },
      onStart(sandbox) {
        kill = () => sandbox.kill();
        if (signal.aborted) kill();
        const read = async (name: 'stdout' | 'stderr'): Promise<void> => {
          for await (const chunk of (sandbox[name] ?? []) as AsyncIterable<Buffer>) await run.onOutput(name, chunk);
        };
        reading.push(read('stdout'), read('stderr'));
        // Somebody waits for both below.
        for (const one of reading) one.catch(over);
      },
    });
    await Promise.all(reading);
    signal.throwIfAborted();
    if (ended !== null) throw new AgsError('service.failed', `The compose client was ended. ${ended}`);
    return exitCode;
  } finally {
    signal.removeEventListener('abort', over);
    kill();
  }
}

async function describeClient({ plan, world, dir, compose, docker }: ClientRun): Promise<SandboxSpec> {
  const { user } = plan;
  for (const one of [dir, join(dir, 'run'), join(dir, 'upper')]) mkdirSync(one, { recursive: true, mode: 0o755 });
  const planned = planQuestion({
    machine: readMachine({
      home: world.home,
      etc: ['ld.so.cache', 'ld.so.conf', 'ld.so.conf.d', 'alternatives'].filter((name) =>
        existsSync(join('/etc', name)),
      ),
      toolDirs: [],
    }),
    user,
    project: projectInside(plan),
    workspace: await workspaceOf(plan, dir, compose),
    upper: null,
    // It says what it has to say: on this machine it writes nothing.
    out: null,
    env: {
      ...compose.env,
      LC_ALL: 'C.UTF-8',
      ...(docker === null ? {} : { DOCKER_HOST: `tcp://127.0.0.1:${DOCKER_PORT}` }),
    },
    limits: QUESTION_LIMITS,
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
            doors: [{ name: 'docker', protocol: 'tcp', address: '127.0.0.1', port: DOCKER_PORT }],
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
