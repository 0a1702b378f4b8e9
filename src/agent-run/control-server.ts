// agent-run/control-server.ts: answers requests on the task's control socket while it runs: stop it, send the agent a message, add
// rules, attach to its terminal, open a shell or run a command beside it.
import { AgsError } from '../protocol/errors.ts';
import { serveControl, StreamAnswer } from '../lib/process/control.ts';
import type { TaskPaths } from '../store/layout.ts';
import type { LiveTurn } from './turn.ts';
import { putMessage } from './inbox.ts';
import { startInside } from '../run/join-sandbox.ts';
import { singleClient } from './terminal-hub.ts';

export interface ControlServer extends Disposable {
  /** Aborted once the run is asked to stop. */
  readonly stopped: AbortSignal;
  /** null: the run was not asked to stop. */
  readonly reason: StopReason | null;
  up(turn: LiveTurn): void;
  down(): void;
  /** Interrupts the agent and kills it 10 s later; with `force`, kills it at once. */
  stop(force: boolean, reason?: StopReason): void;
  /** Kills the agent. The run goes on. */
  endTurn(): void;
  runInside(
    argv: readonly string[],
    input: string,
    signal: AbortSignal,
  ): Promise<{ readonly exitCode: number; readonly stderr: string }>;
}

export interface StopReason {
  readonly text: string;
  readonly failed: boolean;
}

const PATIENCE_MS = 10_000;

export function openControlServer(paths: TaskPaths): ControlServer {
  const stopping = new AbortController();
  let live: LiveTurn | null = null;
  let reason: StopReason | null = null;
  let patience: NodeJS.Timeout | null = null;
  const waiting: (() => void)[] = [];

  function stop(force: boolean, why: StopReason = { text: 'Stopped by you.', failed: false }): void {
    reason ??= why;
    stopping.abort();
    const turn = live;
    if (turn === null) return;
    if (force) return turn.sandbox.kill();
    if (turn.terminal !== null) void turn.terminal.program.then((program) => program.hangUp()).catch(() => undefined);
    else if (turn.driver?.interrupt() !== true) turn.sandbox.signal('SIGTERM');
    patience ??= setTimeout(() => turn.sandbox.kill(), PATIENCE_MS);
  }

  async function answer(request: unknown): Promise<unknown> {
    const wish = request as { do?: unknown; text?: unknown; force?: unknown; wait?: unknown } & WindowWish;
    switch (wish.do) {
      case 'stop':
        stop(wish.force === true);
        return { stopping: true };
      case 'send': {
        const text = typeof wish.text === 'string' ? wish.text : '';
        if (live?.driver?.send(text) === true) return { delivered: 'now' };
        putMessage(paths, text, Date.now());
        return { delivered: 'later' };
      }
      case 'attach': {
        // The terminal opens with the sandbox. If the run ends before, the connection is cut.
        if (wish.wait === true && live === null) await new Promise<void>((opened) => waiting.push(opened));
        const terminal = requireLive().terminal;
        if (terminal === null)
          throw new AgsError('usage.invalid', 'This agent has no terminal: it was not started with --interactive.', {
            hint: 'Follow its log: ags logs -f <task>. Open a shell beside it: ags shell <task>',
          });
        return terminal.hub.attach(await terminal.program);
      }
      case 'shell':
        return openShell(requireLive(), wish);
      case 'exec':
        return openCommand(requireLive(), wish);
      default:
        return requireLive().network.answer(request);
    }
  }

  function requireLive(): LiveTurn {
    if (live !== null) return live;
    throw new AgsError('task.busy', 'The sandbox of this task is not running.', { hint: 'Try again in a moment.' });
  }

  const control = serveControl(paths.root, answer);
  return {
    stopped: stopping.signal,
    get reason() {
      return reason;
    },
    up(turn) {
      live = turn;
      for (const opened of waiting.splice(0)) opened();
      if (stopping.signal.aborted) turn.sandbox.kill();
    },
    down() {
      live = null;
      if (patience !== null) clearTimeout(patience);
      patience = null;
    },
    stop,
    endTurn: () => live?.sandbox.kill(),
    async runInside(argv, input, signal) {
      const said: Buffer[] = [];
      const program = await startInside(requireLive().sandbox, argv, {
        window: null,
        onData: (data) => void (said.length < 64 && said.push(Buffer.from(data.subarray(0, 4096)))),
      });
      const cancel = (): void => program.close();
      signal.addEventListener('abort', cancel);
      program.write(Buffer.from(input));
      program.end();
      const exitCode = await program.done.finally(() => signal.removeEventListener('abort', cancel));
      return { exitCode, stderr: Buffer.concat(said).toString('utf8') };
    },
    [Symbol.dispose]() {
      control.close();
    },
  };
}

interface WindowWish {
  readonly columns?: unknown;
  readonly rows?: unknown;
  readonly term?: unknown;
  readonly argv?: unknown;
}

function openShell(live: LiveTurn, wish: WindowWish): StreamAnswer {
  const number = (value: unknown, other: number): number =>
    typeof value === 'number' && value >= 1 && value <= 9999 ? Math.floor(value) : other;
  const term = typeof wish.term === 'string' && /^[\w.+-]{1,40}$/.test(wish.term) ? wish.term : 'xterm-256color';
  const given = wordsOf(wish);
  const argv = given.length > 0 ? given : ['sh', '-c', 'exec "${SHELL:-/bin/sh}"'];
  return singleClient(({ onData }) =>
    startInside(live.sandbox, ['env', `TERM=${term}`, ...argv], {
      window: { columns: number(wish.columns, 80), rows: number(wish.rows, 24) },
      onData,
    }),
  );
}

function openCommand(live: LiveTurn, wish: WindowWish): StreamAnswer {
  const argv = wordsOf(wish);
  if (argv.length === 0) throw new AgsError('usage.invalid', 'The command is empty.');
  return singleClient((on) => startInside(live.sandbox, argv, { window: null, ...on }));
}

function wordsOf({ argv }: WindowWish): string[] {
  return Array.isArray(argv) ? argv.filter((word): word is string => typeof word === 'string') : [];
}
