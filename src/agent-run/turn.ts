// agent-run/turn.ts: runs one turn of an agent in a sandbox over the run's workspace, and records its output.
// Invariant: when runTurn returns, no process of the sandbox is left, and all output has been recorded.
import { closeSync, fstatSync, openSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import type { AgentDriver, AgentPlan } from '../agents/agent.ts';
import type { AgentEvent } from '../protocol/agent-event.ts';
import type { Decision } from '../protocol/network.ts';
import { createLines } from '../lib/stream/lines.ts';
import { readAtEase } from '../lib/stream/read-at-ease.ts';
import type { Sandbox } from '../sandbox/backend.ts';
import { perlInside } from '../sandbox/spec/interpreter.ts';
import { INSIDE_HOST, insideHostArgv, insideHostScript } from '../sandbox/io/inside-host.ts';
import type { EventLog } from '../store/events.ts';
import type { StoredTask } from '../store/tasks.ts';
import { createRecorder } from './record-events.ts';
import { describeAgentRun } from '../workspace/agent-workspace.ts';
import { authorOf, type PlannedAgent } from './plan-agent.ts';
import { endpointOf } from '../agent-setup/agent-network.ts';
import { startInside, type Inside } from '../run/join-sandbox.ts';
import type { PreparedLayers } from '../workspace/prepare-snapshot.ts';
import { withListeners, type RunHooks } from './run-hooks.ts';
import type { NestedDocker } from '../nested-docker/nested-docker.ts';
import type { ServiceListeners } from '../run/network/network-input.ts';
import { openRunNetwork, type RunNetwork } from '../run/network/run-network.ts';
import { PIPED_INPUT, runSandboxed, writtenBy } from '../run/run-sandboxed.ts';
import { createHub, type TerminalHub } from './terminal-hub.ts';
import type { HostContext } from '../run/host-context.ts';

export interface TurnInput {
  readonly context: HostContext;
  readonly stored: StoredTask;
  readonly planned: PlannedAgent;
  readonly prepared: PreparedLayers;
  readonly hooks: RunHooks;
  readonly services: ServiceListeners | null;
  readonly docker: NestedDocker | null;
  readonly events: EventLog;
  readonly prompt: string;
  /** The conversation to resume; null: start a new one. */
  readonly session: string | null;
  readonly newSession: string;
  /** The sandbox runs. The value is valid until the turn ends. */
  onUp(turn: LiveTurn): void;
  onEvent(event: AgentEvent): void;
  /** Connections to these hosts wait for the user's answer. */
  onNetworkAsks(hosts: readonly string[]): void;
  notice(text: string): void;
}

export interface LiveTurn {
  readonly sandbox: Sandbox;
  readonly network: RunNetwork;
  /** null for an interactive agent. */
  readonly driver: AgentDriver | null;
  /** null unless the agent is interactive. */
  readonly terminal: { readonly hub: TerminalHub; readonly program: Promise<Inside> } | null;
}

export interface TurnEnd {
  readonly exitCode: number;
  /** Why the sandbox was ended early, as a sentence. */
  readonly ended: string | null;
  /** The agent's own report of its end. */
  readonly finished: Extract<AgentEvent, { type: 'agent.finished' }> | null;
}

export async function runTurn(input: TurnInput): Promise<TurnEnd> {
  const { context, stored, planned, events } = input;
  const { paths, task } = stored;
  const interactive = task.goal?.interactive === true;
  const agentPlan = planAgent(input, interactive);
  const plan = {
    ...planned.plan,
    network: {
      ...planned.plan.network,
      spec: joinable(withListeners(planned.plan.network.spec, input.hooks.listeners)),
    },
  };
  const more = {
    mounts: planned.program.mounts,
    files: [
      ...agentPlan.files,
      ...input.hooks.files,
      ...agentPlan.homeFiles.map(({ path, content }) => ({ to: join(HOME_FILES, path), content })),
      { to: INSIDE_HOST, content: insideHostScript() },
    ],
    env: { ...committer(planned), ...agentPlan.env },
  };
  const spec = describeAgentRun(context, plan, paths, task.name, input.prepared, more);
  const denied = createDenials(events);
  // Network events arrive outside of this function. An event that cannot be written, as on a full disk, ends the turn, not the runner.
  let unwritten: { readonly error: unknown } | null = null;
  let kill = (): void => undefined;
  const noting = (note: () => void): void => {
    try {
      note();
    } catch (error) {
      unwritten ??= { error };
      kill();
    }
  };
  await using network = openRunNetwork({
    context,
    id: task.id,
    startedAtMs: context.now().getTime(),
    project: plan.project.root,
    events: (event) =>
      noting(() => {
        events.append(event);
        if (event.type === 'network.asked') input.onNetworkAsks(network.asked());
      }),
    onDecision: (decision) =>
      noting(() => {
        denied(decision);
        input.onNetworkAsks(network.asked());
      }),
    config: plan.config,
    grants: plan.network.grants,
    secrets: plan.network.secrets,
    notice: (text) => noting(() => input.notice(text)),
    services: input.services,
    docker: input.docker,
  });
  // The log of all turns may take as much disk space as the agent's own files.
  const stream = openAgentStream(input, Math.min(MAX_LOG, spec.limits.diskBytes));
  const command = withHomeFiles(agentPlan);
  let streamsOver: Promise<unknown> = Promise.resolve();
  let terminal: LiveTurn['terminal'] = null;
  try {
    const outcome = await runSandboxed({
      context,
      plan,
      id: task.id,
      network: {
        onListener(name, handle) {
          if (name === 'hooks') input.hooks.onListener(name, handle as never);
          else network.onListener(name, handle);
        },
        started: (sandbox) => network.started(sandbox),
      },
      command: insideHostArgv(interactive ? [] : command, perlInside(spec.root)),
      ...(interactive ? {} : { openStdio: PIPED_INPUT }),
      spec,
      runDir: paths.runDir,
      written: writtenBy(paths),
      onStart(sandbox) {
        kill = () => sandbox.kill();
        if (unwritten !== null) kill();
        streamsOver = interactive ? Promise.resolve() : stream.read(sandbox);
        // The error is thrown below, once no process is left.
        streamsOver.catch(() => sandbox.kill());
        terminal = interactive ? openTerminal(sandbox, command) : null;
        input.onUp({ sandbox, network, driver: interactive ? null : stream.driver, terminal });
        if (!interactive) stream.driver.start(input.prompt);
      },
    });
    await streamsOver;
    if (unwritten !== null) throw (unwritten as { readonly error: unknown }).error;
    // An interactive agent reports no result that a program could read; the user saw it.
    if (terminal !== null) return { ended: outcome.ended, exitCode: 0, finished: null };
    stream.driver.exited(outcome.exitCode);
    return { ...outcome, finished: stream.finished() };
  } finally {
    stream.close();
  }
}

const HOME_FILES = '/run/ags/home';

function planAgent(input: TurnInput, interactive: boolean): AgentPlan {
  const { planned, stored } = input;
  const { goal } = stored.task;
  return planned.agent.plan({
    program: planned.program.argv,
    mode: interactive ? 'interactive' : 'headless',
    prompt: input.prompt,
    home: input.context.home,
    project: stored.task.project,
    task: stored.task.name,
    session: planned.agent.resumes ? input.session : null,
    newSession: input.newSession,
    model: goal?.model ?? null,
    maxTurns: goal?.maxTurns ?? null,
    maxCostMicros: goal?.maxCostMicros ?? null,
    signIn: planned.signIn?.signIn ?? null,
    endpoint: endpointOf(planned.signIn),
    hooks: input.hooks.listener,
  });
}

/** Commits inside use the user's name if git has one configured, otherwise the agent's. */
function committer({ plan, agent }: PlannedAgent): Record<string, string> {
  const settings = plan.project.repository?.settings;
  if (settings?.has('user.name') === true && settings.has('user.email')) return {};
  const { agentTitle: name, agentEmail: email } = authorOf(agent);
  return { GIT_AUTHOR_NAME: name, GIT_AUTHOR_EMAIL: email, GIT_COMMITTER_NAME: name, GIT_COMMITTER_EMAIL: email };
}

/** The agent may have put links into its home, so files are copied there from inside, where links cannot lead out. */
function withHomeFiles({ argv, homeFiles }: AgentPlan): string[] {
  if (homeFiles.length === 0) return [...argv];
  return ['sh', '-c', `cp -R --no-preserve=mode ${HOME_FILES}/. "$HOME"/ && exec "$@"`, 'sh', ...argv];
}

/** Allows connections into the sandbox, so that shells and formatters can join it. */
function joinable(network: PlannedAgent['plan']['network']['spec']): PlannedAgent['plan']['network']['spec'] {
  return network.kind === 'gateway' ? { ...network, reach: true } : { kind: 'gateway', listeners: [], reach: true };
}

/** Sends the agent's output to its log unchanged, to its driver line by line, and to the task's events. */
function openAgentStream(
  input: TurnInput,
  maxLog: number,
): {
  driver: AgentDriver;
  read(sandbox: Sandbox): Promise<unknown>;
  finished(): TurnEnd['finished'];
  close(): void;
} {
  const { planned, stored, context, hooks } = input;
  const fd = openSync(stored.paths.agentLog, 'a', 0o600);
  let written = fstatSync(fd).size;
  let finished: TurnEnd['finished'] = null;
  let sandbox: Sandbox | null = null;
  const record = createRecorder(
    () => context.now().getTime(),
    (event) => void input.events.append(event),
  );
  const driver = planned.agent.drive({
    write: (text) => void sandbox?.stdin?.write(text),
    end: () => void sandbox?.stdin?.end(),
    emit(event) {
      if (event.type === 'agent.finished') {
        if (finished !== null) return;
        finished = event;
      }
      record(event);
      hooks.observe(event);
      input.onEvent(event);
    },
    gate: (request) => hooks.gate(request),
  });
  const keep = (chunk: Buffer): void => {
    if (written > maxLog) return;
    written += chunk.length;
    for (let at = 0; at < chunk.length;) at += writeSync(fd, chunk, at);
  };
  const readFrom = async (source: NodeJS.ReadableStream | null, onLine: (line: string) => void): Promise<void> => {
    if (source === null) return;
    const lines = createLines(MAX_LINE, onLine);
    await readAtEase(source, keep, (piece) => lines.push(piece));
    lines.end();
  };
  return {
    driver,
    read(up) {
      sandbox = up;
      up.stdin?.on('error', () => undefined);
      return Promise.all([
        readFrom(up.stdout, (line) => driver.line(line)),
        readFrom(up.stderr, (line) => driver.errorLine(line)),
      ]);
    },
    finished: () => finished,
    close: () => closeSync(fd),
  };
}

const MAX_LINE = 2 ** 20;
/** Output beyond this is still read and shown as events, but not kept in the log. */
const MAX_LOG = 4 * 2 ** 30;

function openTerminal(sandbox: Sandbox, argv: readonly string[]): NonNullable<LiveTurn['terminal']> {
  const hub = createHub();
  const program = startInside(sandbox, ['env', 'TERM=xterm-256color', ...argv], {
    window: { columns: 120, rows: 32 },
    onData: (data) => hub.onData(data),
  });
  void program
    .then(({ done }) => done)
    .catch(() => 1)
    .then((exitCode) => {
      hub.end(exitCode);
      // The sandbox runs nothing but the agent.
      sandbox.kill();
    });
  return { hub, program };
}

/** Records the first refusal of each host as an event. The network log counts the others. */
function createDenials(events: EventLog): (decision: Decision) => void {
  const seen = new Set<string>();
  return ({ verdict, host, port, reason, program }) => {
    const key = `${host}:${port}`;
    if (verdict !== 'denied' || host === '' || seen.has(key) || seen.size > 200) return;
    seen.add(key);
    events.append({ type: 'network.denied', host, port, reason, ...(program === undefined ? {} : { program }) });
  };
}
