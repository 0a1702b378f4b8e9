// agent-run/turn.ts: one turn of an agent: a sandbox over the run's workspace, the agent in it, and everything that it says.
// Invariant: when this returns no process of the sandbox is left, and everything that was said has been recorded.
import { closeSync, fstatSync, openSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import type { AgentDriver, AgentPlan } from '../agents/agent.ts';
import type { AgentEvent } from '../protocol/agent-event.ts';
import type { Decision } from '../protocol/network.ts';
import { createLines } from '../lib/stream/lines.ts';
import { readAtEase } from '../lib/stream/read-at-ease.ts';
import type { Sandbox } from '../sandbox/backend.ts';
import { perlInside } from '../sandbox/spec/interpreter.ts';
import { INSIDE_HOST, INSIDE_HOST_SCRIPT, insideHostArgv } from '../sandbox/io/inside-host.ts';
import type { EventLog } from '../store/events.ts';
import type { StoredTask } from '../store/tasks.ts';
import { createRecorder } from './record-events.ts';
import { describeAgentRun } from '../workspace/agent-workspace.ts';
import { authorOf, endpointOf, type AgentStage } from './plan-agent.ts';
import { startInside, type Inside } from '../run/join-sandbox.ts';
import type { PreparedLayers } from '../workspace/prepare-snapshot.ts';
import { withDoors, type RunHooks } from './run-hooks.ts';
import type { InnerDocker } from '../nested-docker/nested-docker.ts';
import { openRunNetwork, type RunNetwork, type ServiceDoors } from '../run/network/run-network.ts';
import { NO_SIGNALS, supervise } from '../run/supervise.ts';
import { createHub, type TerminalHub } from './terminal-hub.ts';
import type { World } from '../run/host-context.ts';

export interface TurnInput {
  readonly world: World;
  readonly stored: StoredTask;
  readonly stage: AgentStage;
  readonly prepared: PreparedLayers;
  readonly hooks: RunHooks;
  /** null: it has none. */
  readonly services: ServiceDoors | null;
  /** The task's engine. */
  readonly docker: InnerDocker | null;
  readonly events: EventLog;
  readonly prompt: string;
  /** null: a new one. */
  readonly session: string | null;
  readonly newSession: string;
  /** It runs: it can be talked to until this turn is over. */
  onUp(turn: LiveTurn): void;
  onEvent(event: AgentEvent): void;
  /** A connection waits for a person; null: no more. */
  onNetworkAsk(host: string | null): void;
  notice(text: string): void;
}

export interface LiveTurn {
  readonly sandbox: Sandbox;
  readonly network: RunNetwork;
  /** null: it has a terminal. */
  readonly driver: AgentDriver | null;
  /** null: it has none. */
  readonly terminal: { readonly hub: TerminalHub; readonly program: Promise<Inside> } | null;
}

export interface TurnEnd {
  readonly exitCode: number;
  /** Why the sandbox was ended early, in words. */
  readonly ended: string | null;
  /** What the agent itself said about its end. */
  readonly finished: Extract<AgentEvent, { type: 'agent.finished' }> | null;
}

export async function runTurn(input: TurnInput): Promise<TurnEnd> {
  const { world, stored, stage, events } = input;
  const { paths, task } = stored;
  const interactive = task.goal?.interactive === true;
  const agentPlan = planAgent(input, interactive);
  const plan = {
    ...stage.plan,
    network: { ...stage.plan.network, spec: joinable(withDoors(stage.plan.network.spec, input.hooks.doors)) },
  };
  const more = {
    mounts: stage.program.mounts,
    files: [
      ...agentPlan.files,
      ...input.hooks.files,
      ...agentPlan.homeFiles.map(({ path, content }) => ({ to: join(HOME_FILES, path), content })),
      { to: INSIDE_HOST, content: INSIDE_HOST_SCRIPT },
    ],
    env: { ...whoCommits(stage), ...agentPlan.env },
  };
  const spec = describeAgentRun(world, plan, paths, task.name, input.prepared, more);
  const denied = createDenials(events);
  // Connections come and go by themselves: what cannot be written down then, on a full disk, ends the turn, and not this process.
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
    world,
    id: task.id,
    startedAtMs: world.now().getTime(),
    project: plan.project.root,
    events: (event) =>
      noting(() => {
        events.append(event);
        if (event.type === 'network.asked') input.onNetworkAsk(String(event['host']));
      }),
    onDecision: (decision) =>
      noting(() => {
        denied(decision);
        input.onNetworkAsk(null);
      }),
    config: plan.config,
    grants: plan.network.grants,
    secrets: plan.network.secrets,
    notice: (text) => noting(() => input.notice(text)),
    services: input.services,
    docker: input.docker,
  });
  // Beside what it writes itself, it may fill as much of the disk once more with what it says, in all its turns.
  const stream = openAgentStream(input, Math.min(MAX_LOG, spec.limits.diskBytes));
  const command = withHomeFiles(agentPlan);
  let streamsOver: Promise<unknown> = Promise.resolve();
  let terminal: LiveTurn['terminal'] = null;
  try {
    const outcome = await supervise({
      world,
      plan,
      id: task.id,
      network: {
        onDoor(name, handle) {
          if (name === 'hooks') input.hooks.onDoor(name, handle as never);
          else network.onDoor(name, handle);
        },
        started: (sandbox) => network.started(sandbox),
      },
      request: {
        command: insideHostArgv(interactive ? [] : command, perlInside(spec.root)),
        openStdio: async () => ({
          stdio: interactive
            ? { stdin: 'ignore', stdout: 'pipe', stderr: 'pipe', terminal: null }
            : { stdin: 'pipe', stdout: 'pipe', stderr: 'pipe', terminal: null },
          close: async () => undefined,
        }),
      },
      spec,
      paths,
      // The desk has its own way to stop it.
      signals: NO_SIGNALS,
      onStart(sandbox) {
        kill = () => sandbox.kill();
        if (unwritten !== null) kill();
        streamsOver = interactive ? Promise.resolve() : stream.read(sandbox);
        // What cannot be written down is told below, when nothing runs any more.
        streamsOver.catch(() => sandbox.kill());
        terminal = interactive ? openTerminal(sandbox, command) : null;
        input.onUp({ sandbox, network, driver: interactive ? null : stream.driver, terminal });
        if (!interactive) stream.driver.start(input.prompt);
      },
    });
    await streamsOver;
    if (unwritten !== null) throw (unwritten as { readonly error: unknown }).error;
    // A terminal has no words of its end that a program could read; who sat at it knows.
    if (terminal !== null) return { ended: outcome.ended, exitCode: 0, finished: null };
    stream.driver.exited(outcome.exitCode);
    return { ...outcome, finished: stream.finished() };
  } finally {
    stream.close();
  }
}

const HOME_FILES = '/run/ags/home';

function planAgent(input: TurnInput, interactive: boolean): AgentPlan {
  const { stage, stored } = input;
  const { goal } = stored.task;
  return stage.agent.plan({
    program: stage.program.argv,
    mode: interactive ? 'interactive' : 'headless',
    prompt: input.prompt,
    home: input.world.home,
    project: stored.task.project,
    task: stored.task.name,
    session: stage.agent.resumes ? input.session : null,
    newSession: input.newSession,
    model: goal?.model ?? null,
    maxTurns: goal?.maxTurns ?? null,
    maxCostMicros: goal?.maxCostMicros ?? null,
    signIn: stage.signIn?.signIn ?? null,
    endpoint: endpointOf(stage.signIn),
    hooks: input.hooks.door,
  });
}

/** Who has told git their name commits under it inside as well; otherwise the agent has a name of its own. */
function whoCommits({ plan, agent }: AgentStage): Record<string, string> {
  const settings = plan.project.repository?.settings;
  if (settings?.has('user.name') === true && settings.has('user.email')) return {};
  const { agentTitle: name, agentEmail: email } = authorOf(agent);
  return { GIT_AUTHOR_NAME: name, GIT_AUTHOR_EMAIL: email, GIT_COMMITTER_NAME: name, GIT_COMMITTER_EMAIL: email };
}

/** The home is the agent's: what is put into it is put there from inside, where a link leads nowhere else. */
function withHomeFiles({ argv, homeFiles }: AgentPlan): string[] {
  if (homeFiles.length === 0) return [...argv];
  return ['sh', '-c', `cp -R --no-preserve=mode ${HOME_FILES}/. "$HOME"/ && exec "$@"`, 'sh', ...argv];
}

/** Connections into it can be asked for, so that people and formatters can join. */
function joinable(network: AgentStage['plan']['network']['spec']): AgentStage['plan']['network']['spec'] {
  return network.kind === 'gateway' ? { ...network, reach: true } : { kind: 'gateway', doors: [], reach: true };
}

/** What it prints goes three ways: word for word into its log, line by line to its driver, and as events to everybody. */
function openAgentStream(
  input: TurnInput,
  maxLog: number,
): {
  driver: AgentDriver;
  read(sandbox: Sandbox): Promise<unknown>;
  finished(): TurnEnd['finished'];
  close(): void;
} {
  const { stage, stored, world, hooks } = input;
  const fd = openSync(stored.paths.agentLog, 'a', 0o600);
  let written = fstatSync(fd).size;
  let finished: TurnEnd['finished'] = null;
  let sandbox: Sandbox | null = null;
  const record = createRecorder(
    () => world.now().getTime(),
    (event) => void input.events.append(event),
  );
  const driver = stage.agent.drive({
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
/** Then what it says is still read and shown, only not kept word for word. */
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
      // Its sandbox has nothing else to do.
      sandbox.kill();
    });
  return { hub, program };
}

/** The first refusal of each host is an event of the run; how often there were others is in the log of the network. */
function createDenials(events: EventLog): (decision: Decision) => void {
  const seen = new Set<string>();
  return ({ verdict, host, port, reason, program }) => {
    const key = `${host}:${port}`;
    if (verdict !== 'denied' || host === '' || seen.has(key) || seen.size > 200) return;
    seen.add(key);
    events.append({ type: 'network.denied', host, port, reason, ...(program === undefined ? {} : { program }) });
  };
}
