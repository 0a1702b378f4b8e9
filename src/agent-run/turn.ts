// agent-run/turn.ts: runs one turn of an agent in a sandbox over the run's workspace, and records its output.
// Invariant: when runTurn returns, no process of the sandbox is left, and all output has been recorded.
import { closeSync, fstatSync, openSync, writeSync } from 'node:fs';
import type { AgentDriver, AgentPlan } from '../agents/agent.ts';
import type { AgentEvent } from '../protocol/agent-event.ts';
import { createLines } from '../lib/stream/lines.ts';
import { readAtEase } from '../lib/stream/read-at-ease.ts';
import type { Sandbox } from '../sandbox/backend.ts';
import type { RunAccount } from './model/account.ts';
import { createRecorder } from './record-events.ts';
import { endpointOf } from '../agent-setup/agent-network.ts';
import { startInside, type Inside } from '../run/join-sandbox.ts';
import type { RunNetwork } from '../run/network/run-network.ts';
import { PIPED_INPUT } from '../run/run-sandboxed.ts';
import { createPromptWatch, type PromptWatch } from './prompt-watch.ts';
import { createHub, type TerminalHub } from './terminal-hub.ts';
import { HOME_FILES, runTurnSandbox, type TurnSandboxInput } from './turn-sandbox.ts';

export interface TurnInput extends TurnSandboxInput {
  readonly prompt: string;
  /** The conversation to resume; null: start a new one. */
  readonly session: string | null;
  readonly newSession: string;
  /** The sandbox runs. The value is valid until the turn ends. */
  onUp(turn: LiveTurn): void;
  onEvent(event: AgentEvent): void;
  /** Whether an agent at a terminal waits at its prompt. */
  onPrompt(waiting: boolean): void;
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
  /** Why the agent's command does not exist inside, as a sentence; null: it does, or nothing is known. */
  readonly notFound: string | null;
  /** The agent's own report of its end. */
  readonly finished: Extract<AgentEvent, { type: 'agent.finished' }> | null;
}

export async function runTurn(input: TurnInput): Promise<TurnEnd> {
  const { stored, planned } = input;
  const interactive = stored.task.goal?.interactive === true;
  const agentPlan = planAgent(input, interactive);
  // The log of all turns may take as much disk space as the agent's own files.
  const stream = openAgentStream(input, Math.min(MAX_LOG, planned.plan.config.limits.diskBytes));
  const command = withHomeFiles(agentPlan);
  let streamsOver: Promise<unknown> = Promise.resolve();
  let terminal: LiveTurn['terminal'] = null;
  // Changes at the prompt come outside of this function. One that cannot be written, as on a full disk, ends the turn, not the runner.
  let unwritten: { readonly error: unknown } | null = null;
  try {
    const outcome = await runTurnSandbox(input, {
      agentPlan,
      command: interactive ? [] : command,
      ...(interactive ? {} : { openStdio: PIPED_INPUT }),
      onUp(sandbox, network) {
        streamsOver = interactive ? Promise.resolve() : stream.read(sandbox);
        // The error is thrown below, once no process is left.
        streamsOver.catch(() => sandbox.kill());
        const onPrompt = (waiting: boolean): void => {
          try {
            input.onPrompt(waiting);
          } catch (error) {
            unwritten ??= { error };
            sandbox.kill();
          }
        };
        const watched = planned.agent.drawsAtWork === true ? onPrompt : null;
        terminal = interactive ? openTerminal(sandbox, command, watched, () => input.account.asks) : null;
        input.onUp({ sandbox, network, driver: interactive ? null : stream.driver, terminal });
        if (!interactive) stream.driver.start(input.prompt);
      },
    });
    await streamsOver;
    if (unwritten !== null) throw (unwritten as { readonly error: unknown }).error;
    // An interactive agent reports no result that a program could read; the user saw it.
    if (terminal !== null) return { ended: outcome.ended, exitCode: 0, notFound: null, finished: null };
    stream.driver.exited(outcome.exitCode);
    return { ...outcome, finished: stream.finished() };
  } finally {
    await streamsOver.catch(() => undefined);
    stream.close();
  }
}

function planAgent(input: TurnInput, interactive: boolean): AgentPlan {
  const { planned, stored } = input;
  return planned.agent.plan({
    program: planned.program.argv,
    mode: interactive ? 'interactive' : 'headless',
    prompt: input.prompt,
    home: input.context.home,
    project: stored.task.project,
    task: stored.task.name,
    session: planned.agent.resumes ? input.session : null,
    newSession: input.newSession,
    model: planned.model,
    signIn: planned.signIn?.signIn ?? null,
    endpoint: endpointOf(planned.signIn),
    settings: planned.settings,
    ownEndpoint: planned.signIn?.secret.own !== undefined,
    hooks: input.hooks.listener,
  });
}

/** An agent may have put anything into the home, so files are copied there from inside, where links cannot lead out, and win over it. */
function withHomeFiles({ argv, homeFiles }: AgentPlan): string[] {
  if (homeFiles.length === 0) return [...argv];
  return [
    'sh',
    '-c',
    `cp -R --remove-destination --no-preserve=mode ${HOME_FILES}/. "$HOME"/ && exec "$@"`,
    'sh',
    ...argv,
  ];
}

/** The gateway has counted or told it already: the agent's usage, its retries, its traces of a failed request. */
function isKnown(event: AgentEvent, { metered, failures }: RunAccount): boolean {
  if (event.type === 'agent.used' || event.type === 'agent.waited') return metered;
  return event.type === 'agent.printed' && event.stream === 'stderr' && failures.now !== null;
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
      if (!isKnown(event, input.account)) record(event);
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

function openTerminal(
  sandbox: Sandbox,
  argv: readonly string[],
  onPrompt: ((waiting: boolean) => void) | null,
  asks: () => RunAccount['asks'],
): NonNullable<LiveTurn['terminal']> {
  const hub = createHub();
  const watch = onPrompt === null ? null : createPromptWatch(onPrompt, asks);
  const program = startInside(sandbox, ['env', 'TERM=xterm-256color', ...argv], {
    window: { columns: 120, rows: 32 },
    onData(data) {
      watch?.drew();
      hub.onData(data);
    },
  });
  void program
    .then(({ done }) => done)
    .catch(() => 1)
    .then((exitCode) => {
      watch?.close();
      hub.end(exitCode);
      // The sandbox runs nothing but the agent.
      sandbox.kill();
    });
  return { hub, program: watch === null ? program : program.then((inside) => watched(inside, watch)) };
}

function watched(inside: Inside, watch: PromptWatch): Inside {
  return {
    ...inside,
    write(data) {
      watch.typed(data);
      inside.write(data);
    },
    resize(columns, rows) {
      watch.resized();
      inside.resize(columns, rows);
    },
  };
}
