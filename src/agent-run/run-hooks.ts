// agent-run/run-hooks.ts: the hooks of one run: found, approved, copied out of reach, and asked whenever its agent does something.
// Invariant: what runs on this machine is a private copy of exactly the bytes that were approved; neither the agent nor a later
// change in the checkout reaches it. What goes wrong here refuses.
import { randomBytes } from 'node:crypto';
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import type { Server, Socket } from 'node:net';
import { basename, dirname, join } from 'node:path';
import type { Agent, HookDoor } from '../agents/agent.ts';
import type { EffectiveConfig } from '../config/effective.ts';
import { requireHookTrust } from '../config/trust.ts';
import { clientCommand, CLIENT_PATH, hookClient } from '../hooks/client.ts';
import { serveHookDoor } from '../hooks/door.ts';
import { createEngine } from '../hooks/engine.ts';
import { answerOf, execute, MARK } from '../hooks/execute.ts';
import { findProjectHooks, findUserHooks, type HookFile } from '../hooks/find.ts';
import type { Answer, Hook } from '../hooks/hook.ts';
import { killMarked } from '../hooks/marked.ts';
import { createObserver } from '../hooks/observer.ts';
import { readyHooks } from '../hooks/ready.ts';
import { removeTree } from '../lib/files.ts';
import type { AgentEvent } from '../protocol/agent-event.ts';
import {
  HOOK_ANSWER_SECONDS,
  type GateRequest,
  type GateVerdict,
  type HookCommand,
  type HookDecided,
  type HookInput,
} from '../protocol/hook.ts';
import type { Door, SandboxNetwork } from '../protocol/spec.ts';
import { taskPaths } from '../store/layout.ts';
import { HOOKS_PORT } from '../run/network/plan-network.ts';
import type { World } from '../run/host-context.ts';

export interface RunHooks {
  /** For the adapter's plan; null: no hook is configured, or this agent cannot be stopped by one. */
  readonly door: HookDoor | null;
  /** To be added to the sandbox: doors of its network, read-only files. */
  readonly doors: readonly Door[];
  readonly files: readonly { readonly to: string; readonly content: string }[];
  onDoor(name: string, handle: Server): void;
  /** Never rejects. */
  gate(request: GateRequest): Promise<GateVerdict>;
  /** For agents that cannot be stopped: what they did, as they say it. Does nothing for others. */
  observe(event: AgentEvent): void;
  close(): Promise<void>;
}

export interface RunHooksInput {
  readonly world: World;
  /** The user's own checkout. */
  readonly project: string;
  readonly config: Pick<EffectiveConfig, 'hooks'>;
  /** The task's id. Its directory is there already. */
  readonly task: string;
  readonly run: number;
  readonly agent: Pick<Agent, 'name' | 'gate' | 'readHook'>;
  readonly goal: string;
  /** What starts Perl inside. */
  readonly perl: readonly string[];
  emit(event: HookDecided): void;
  /** Runs a program in the running sandbox, in the project, with `input` on its stdin. */
  runInside(
    argv: readonly string[],
    input: string,
    signal: AbortSignal,
  ): Promise<{ readonly exitCode: number; readonly stderr: string }>;
}

/**
 * Throws config.untrusted or config.invalid; for `ags start`, so that a goal is refused before it queues.
 * @public Called by the verbs that start agents.
 */
export function checkHooks(world: World, project: string): void {
  findHooks(world, project);
}

/** @public Called by the runner. */
export async function openRunHooks(input: RunHooksInput): Promise<RunHooks> {
  const { world, agent } = input;
  const { root } = taskPaths(world.stateDir, input.task);
  const place = join(root, 'hooks');
  // A runner that was killed may have left one.
  removeTree(place);
  const found = findHooks(world, input.project);
  const mark = `${randomBytes(16).toString('hex')}.`;
  const hooks = assemble(input, found, { place, mark, logFile: join(root, 'actions.jsonl') });
  const engine = createEngine({
    hooks,
    about: { task: input.task, run: input.run, agent: agent.name, goal: input.goal, project: input.project },
    emit: (event) => input.emit(event),
    mostMs: (HOOK_ANSWER_SECONDS - 60) * 1000,
  });
  const enforced = agent.gate === 'enforced';
  const { readHook } = agent;
  const server = serveHookDoor(async (event, json) => {
    const request = readHook?.(event, json) ?? null;
    return request === null ? { allow: true } : engine.decide(request, 'enforced');
  });
  const observer = createObserver(
    (request) => engine.decide(request, 'observed'),
    (count) => input.emit(tooFast(count)),
  );
  // What the client waits for is a little longer than the longest answer, so that a refusal comes from whoever knows why.
  const seconds = Math.ceil(engine.longestMs / 1000) + 5;
  const wanted = enforced && hooks.length > 0;
  const viaDoor = wanted && readHook !== null;
  return {
    door: wanted ? { command: clientCommand(input.perl), url: `http://127.0.0.1:${HOOKS_PORT}/hook` } : null,
    doors: viaDoor ? [{ name: DOOR, protocol: 'tcp', address: '127.0.0.1', port: HOOKS_PORT }] : [],
    files: viaDoor ? [{ to: CLIENT_PATH, content: hookClient(HOOKS_PORT, seconds) }] : [],
    onDoor(name, handle) {
      if (name === DOOR) handle.on('connection', (socket: Socket) => server.enter(socket));
    },
    gate: (request) => engine.decide(request, 'enforced'),
    observe(event) {
      if (!enforced) observer.observe(event);
    },
    async close() {
      server.close();
      const late = setTimeout(() => engine.close(), engine.longestMs);
      await observer.close();
      clearTimeout(late);
      engine.close();
      killMarked(`${MARK}=${mark}`);
      removeTree(place);
    },
  };
}

const DOOR = 'hooks';

function tooFast(count: number): HookDecided {
  const reason = `${count} actions came too fast to be put before the hooks.`;
  return {
    type: 'hook.decided',
    point: 'pre-any',
    hook: 'ags',
    tool: '',
    verdict: 'failed',
    reason,
    ms: 0,
    mode: 'observed',
  };
}

/**
 * The network of a sandbox with the doors of its hooks; one without any network has these alone.
 * @public Called by the runner.
 */
export function withDoors(network: SandboxNetwork, doors: readonly Door[]): SandboxNetwork {
  if (doors.length === 0) return network;
  return network.kind === 'gateway'
    ? { ...network, doors: [...network.doors, ...doors] }
    : { kind: 'gateway', doors, reach: false };
}

interface Found {
  readonly user: readonly HookFile[];
  readonly project: readonly HookFile[];
}

function findHooks(world: World, projectDir: string): Found {
  const project = findProjectHooks(projectDir);
  requireHookTrust({ stateDir: world.stateDir, projectDir, hooks: project });
  const directory = join(dirname(world.configFile), 'hooks');
  const label = directory.startsWith(`${world.home}/`) ? `~${directory.slice(world.home.length)}` : directory;
  return { user: findUserHooks(directory, label, world.uid), project };
}

interface Place {
  readonly place: string;
  readonly mark: string;
  readonly logFile: string;
}

/** Those of ags first, then the user's files, those of the project, and what the configuration names. */
function assemble(input: RunHooksInput, { user, project }: Found, { place, mark, logFile }: Place): Hook[] {
  const { world, config } = input;
  const timeoutMs = config.hooks.timeoutSeconds * 1000;
  const inside = async (argv: readonly string[], asked: HookInput, signal: AbortSignal): Promise<Answer> => {
    const { exitCode, stderr } = await input.runInside(argv, `${JSON.stringify(asked)}\n`, signal);
    return answerOf(exitCode, null, Buffer.from(stderr).subarray(0, MOST_REASON));
  };
  const outside = createOutside(input, place, mark);
  const files = [...user, ...project];
  return [
    ...readyHooks(config.hooks.use, { logFile, timeoutMs, now: () => world.now(), runInside: inside }),
    ...files.map((file, i): Hook => {
      const copy = outside.copy(file, i);
      return { name: file.path, point: file.point, timeoutMs, ask: outside.ask(file.path, [copy], timeoutMs) };
    }),
    ...config.hooks.commands.map((command): Hook => {
      const ownMs = command.timeoutSeconds === null ? timeoutMs : command.timeoutSeconds * 1000;
      const argv = typeof command.run === 'string' ? ['/bin/sh', '-c', command.run] : command.run;
      const name = nameOf(command);
      return {
        name,
        point: command.point,
        timeoutMs: ownMs,
        ask: command.inside ? (asked, signal) => inside(argv, asked, signal) : outside.ask(name, argv, ownMs),
      };
    }),
  ];
}

const MOST_REASON = 4096;

function nameOf({ run, origin }: HookCommand): string {
  const text = typeof run === 'string' ? run : run.join(' ');
  return `${text.length > 60 ? `${text.slice(0, 57)}...` : text} (${origin})`;
}

interface Outside {
  /** The path of its private copy. */
  copy(file: HookFile, i: number): string;
  ask(name: string, argv: readonly string[], timeoutMs: number): Hook['ask'];
}

/** On this machine, as the caller, in a directory of their own, with a small environment. */
function createOutside({ world, task, project }: RunHooksInput, place: string, mark: string): Outside {
  const cwd = join(place, 'work');
  const programs = join(place, 'programs');
  for (const directory of [place, cwd, programs]) mkdirSync(directory, { mode: 0o700 });
  const path = (world.env['PATH'] ?? '/usr/local/bin:/usr/bin:/bin').split(':').filter((dir) => dir.startsWith('/'));
  const env = {
    PATH: path.join(':'),
    HOME: world.home,
    USER: world.userName,
    LANG: world.env['LANG'] ?? 'C.UTF-8',
    TMPDIR: cwd,
    AGS_TASK: task,
    AGS_PROJECT: project,
  };
  let count = 0;
  return {
    copy(file, i) {
      const to = join(programs, `${i}-${basename(file.path)}`);
      writeFileSync(to, file.bytes, { flag: 'wx', mode: 0o500 });
      chmodSync(to, 0o500);
      return to;
    },
    ask: (name, argv, timeoutMs) => (asked, signal) =>
      execute({
        argv,
        input: `${JSON.stringify(asked)}\n`,
        env: { ...env, AGS_HOOK: asked.hook, AGS_HOOK_NAME: name },
        cwd,
        timeoutMs,
        mark: `${mark}${count++}.`,
        signal,
      }),
  };
}
