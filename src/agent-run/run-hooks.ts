// agent-run/run-hooks.ts: the hooks of one run: finds them, checks their approval, copies them, and calls them for each action.
// Invariant: hooks on the host run from private copies of exactly the approved bytes; neither the agent nor a later change in the
// checkout can modify them. Any failure here refuses the action.
import { randomBytes } from 'node:crypto';
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import type { Server, Socket } from 'node:net';
import { basename, dirname, join } from 'node:path';
import type { Agent, HookListener } from '../agents/agent.ts';
import type { EffectiveConfig } from '../config/effective.ts';
import { requireHookTrust } from '../config/trust.ts';
import { clientCommand, CLIENT_PATH, hookClient } from '../hooks/client.ts';
import { serveHookListener } from '../hooks/listener.ts';
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
import type { Listener, SandboxNetwork } from '../protocol/spec.ts';
import { taskPaths } from '../store/layout.ts';
import { HOOKS_PORT } from '../run/network/plan-network.ts';
import type { HostContext } from '../run/host-context.ts';
import { createRecorder } from './record-events.ts';

export interface RunHooks {
  /** For the adapter's plan; null: no hook is configured, or hooks cannot stop this agent. */
  readonly listener: HookListener | null;
  /** Listeners and read-only files to add to the sandbox. */
  readonly listeners: readonly Listener[];
  readonly files: readonly { readonly to: string; readonly content: string }[];
  onListener(name: string, handle: Server): void;
  /** Never rejects. */
  gate(request: GateRequest): Promise<GateVerdict>;
  /** Passes the reported actions of agents that hooks cannot stop to the hooks. Does nothing for other agents. */
  observe(event: AgentEvent): void;
  /** Whether a post-stop hook runs in the sandbox. */
  readonly endsInside: boolean;
  /** Asks the post-stop hooks whether the agent is done. null: all say yes, or there are none. Never rejects. */
  atEnd(signal: AbortSignal): Promise<Refusal | null>;
  close(): Promise<void>;
}

export interface Refusal {
  /** For the agent. */
  readonly reason: string;
  /** The hook's name and its own words. */
  readonly by?: { readonly hook: string; readonly said: string };
}

export interface RunHooksInput {
  readonly context: HostContext;
  /** The user's own checkout. */
  readonly project: string;
  readonly config: Pick<EffectiveConfig, 'hooks'>;
  /** The task's ID. Its directory exists already. */
  readonly task: string;
  readonly run: number;
  readonly agent: Pick<Agent, 'name' | 'gate' | 'readHook' | 'omitsRefused'>;
  readonly goal: string;
  /** A person is at the agent's terminal: its own stop hook asks the post-stop hooks. Otherwise the runner asks them (`atEnd`). */
  readonly interactive: boolean;
  /** The command that starts Perl inside. */
  readonly perl: readonly string[];
  emit(event: HookDecided | ToolEvent): void;
  /** Runs a program in the running sandbox, in the project, with `input` on its stdin. */
  runInside(
    argv: readonly string[],
    input: string,
    signal: AbortSignal,
  ): Promise<{ readonly exitCode: number; readonly stderr: string }>;
}

/**
 * Throws config.untrusted or config.invalid, so that `ags start` refuses a goal before it queues.
 * @public Called by the verbs that start agents.
 */
export function checkHooks(context: HostContext, project: string): void {
  findHooks(context, project);
}

/** @public Called by the runner. */
export async function openRunHooks(input: RunHooksInput): Promise<RunHooks> {
  const { context, agent } = input;
  const { root } = taskPaths(context.stateDir, input.task);
  const place = join(root, 'hooks');
  // A killed runner may have left its copies.
  removeTree(place);
  const found = findHooks(context, input.project);
  const mark = `${randomBytes(16).toString('hex')}.`;
  const hooks = assemble(input, found, { place, mark, logFile: join(root, 'actions.jsonl') });
  const engine = createEngine({
    hooks,
    about: { task: input.task, run: input.run, agent: agent.name, goal: input.goal, project: input.project },
    emit: agent.omitsRefused === true ? withRefusedCalls(input) : (event) => input.emit(event),
    mostMs: (HOOK_ANSWER_SECONDS - 60) * 1000,
  });
  const enforced = agent.gate === 'enforced';
  const { readHook } = agent;
  let sentBack = 0;
  const gate = async (request: GateRequest): Promise<GateVerdict> => {
    // What a program inside says about the agent's end does not count.
    if (request.when === 'stop' && !input.interactive) return { allow: true };
    const verdict = await engine.decide(request, 'enforced');
    if (verdict.allow || (request.when === 'stop' && ++sentBack > MAX_SENT_BACK)) return { allow: true };
    return { allow: false, reason: verdict.reason };
  };
  const server = serveHookListener(async (event, json) => {
    const request = readHook?.(event, json) ?? null;
    return request === null ? { allow: true } : gate(request);
  });
  const observer = createObserver(
    (request) => engine.decide(request, 'observed'),
    (count) => input.emit(tooFast(count)),
  );
  // The client waits a little longer than the slowest hook, so that a refusal carries the hook's reason and not a timeout's.
  const seconds = Math.ceil(engine.longestMs / 1000) + 5;
  const asking = input.interactive ? hooks : hooks.filter(({ point }) => point !== 'post-stop');
  const wanted = enforced && asking.length > 0;
  const viaListener = wanted && readHook !== null;
  return {
    listener: wanted ? { command: clientCommand(input.perl), url: `http://127.0.0.1:${HOOKS_PORT}/hook` } : null,
    listeners: viaListener ? [{ name: LISTENER, protocol: 'tcp', address: '127.0.0.1', port: HOOKS_PORT }] : [],
    files: viaListener ? [{ to: CLIENT_PATH, content: hookClient(HOOKS_PORT, seconds) }] : [],
    onListener(name, handle) {
      if (name === LISTENER) handle.on('connection', (socket: Socket) => server.enter(socket));
    },
    gate,
    observe(event) {
      if (!enforced) observer.observe(event);
    },
    endsInside: input.config.hooks.commands.some(({ point, inside }) => point === 'post-stop' && inside),
    async atEnd(signal) {
      const over = (): void => engine.close();
      signal.addEventListener('abort', over);
      if (signal.aborted) over();
      const verdict = await engine.decide({ when: 'stop', tool: '', actions: [], input: {} }, 'enforced');
      signal.removeEventListener('abort', over);
      return verdict.allow ? null : verdict;
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

const LISTENER = 'hooks';
type ToolEvent = Extract<AgentEvent, { type: 'tool.started' | 'tool.finished' }>;

/** Puts the refused call around the verdict, as if the agent had reported it. */
function withRefusedCalls(input: RunHooksInput): (event: HookDecided, request: GateRequest) => void {
  const record = createRecorder(
    () => input.context.now().getTime(),
    (event) => input.emit(event as ToolEvent),
  );
  return (event, { when, tool, actions }) => {
    const calls = when === 'before' && event.verdict !== 'allowed' ? actions : [];
    const ids = calls.map(() => `refused-${randomBytes(6).toString('hex')}`);
    for (const [at, action] of calls.entries()) record({ type: 'tool.started', id: ids[at] ?? '', tool, action });
    input.emit(event);
    for (const id of ids) record({ type: 'tool.finished', id, outcome: 'refused' });
  };
}

/** A hook that always refuses must not keep an agent at work for ever. */
export const MAX_SENT_BACK = 5;

function tooFast(count: number): HookDecided {
  const reason = `${count} actions were not checked by hooks: they came too fast.`;
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
 * Adds the listeners of the hooks to a sandbox's network. A sandbox without a network gets these alone.
 * @public Called by the runner.
 */
export function withListeners(network: SandboxNetwork, listeners: readonly Listener[]): SandboxNetwork {
  if (listeners.length === 0) return network;
  return network.kind === 'gateway'
    ? { ...network, listeners: [...network.listeners, ...listeners] }
    : { kind: 'gateway', listeners, reach: false };
}

interface Found {
  readonly user: readonly HookFile[];
  readonly project: readonly HookFile[];
}

function findHooks(context: HostContext, projectDir: string): Found {
  const project = findProjectHooks(projectDir);
  requireHookTrust({ stateDir: context.stateDir, projectDir, hooks: project });
  const directory = join(dirname(context.configFile), 'hooks');
  const label = directory.startsWith(`${context.home}/`) ? `~${directory.slice(context.home.length)}` : directory;
  return { user: findUserHooks(directory, label, context.uid), project };
}

interface Place {
  readonly place: string;
  readonly mark: string;
  readonly logFile: string;
}

/** In order: built-in hooks, the user's files, the project's files, commands of the configuration. */
function assemble(input: RunHooksInput, { user, project }: Found, { place, mark, logFile }: Place): Hook[] {
  const { context, config } = input;
  const timeoutMs = config.hooks.timeoutSeconds * 1000;
  const inside = async (argv: readonly string[], action: HookInput, signal: AbortSignal): Promise<Answer> => {
    const { exitCode, stderr } = await input.runInside(argv, `${JSON.stringify(action)}\n`, signal);
    return answerOf(exitCode, null, Buffer.from(stderr).subarray(0, MOST_REASON));
  };
  const outside = createOutside(input, place, mark);
  const files = [...user, ...project];
  return [
    ...readyHooks(config.hooks.use, { logFile, timeoutMs, now: () => context.now(), runInside: inside }),
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
        ask: command.inside ? (action, signal) => inside(argv, action, signal) : outside.ask(name, argv, ownMs),
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
  /** Returns the path of the private copy. */
  copy(file: HookFile, i: number): string;
  ask(name: string, argv: readonly string[], timeoutMs: number): Hook['ask'];
}

/** Runs hooks on the host as the caller, in a private directory with a small environment. */
function createOutside({ context, task, project }: RunHooksInput, place: string, mark: string): Outside {
  const cwd = join(place, 'work');
  const programs = join(place, 'programs');
  for (const directory of [place, cwd, programs]) mkdirSync(directory, { mode: 0o700 });
  const path = (context.env['PATH'] ?? '/usr/local/bin:/usr/bin:/bin').split(':').filter((dir) => dir.startsWith('/'));
  const env = {
    PATH: path.join(':'),
    HOME: context.home,
    USER: context.userName,
    LANG: context.env['LANG'] ?? 'C.UTF-8',
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
    ask: (name, argv, timeoutMs) => (action, signal) =>
      execute({
        argv,
        input: `${JSON.stringify(action)}\n`,
        env: { ...env, AGS_HOOK: action.hook, AGS_HOOK_NAME: name },
        cwd,
        timeoutMs,
        mark: `${mark}${count++}.`,
        signal,
      }),
  };
}
