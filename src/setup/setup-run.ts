// setup/setup-run.ts: runs a project's setup commands in a sandbox over a snapshot. Every later task shares their output.
import { randomBytes } from 'node:crypto';
import { constants } from 'node:os';
import { createInterface } from 'node:readline';
import { AgsError } from '../protocol/errors.ts';
import { commandTitle } from '../lib/command-title.ts';
import { visible } from '../lib/sanitize.ts';
import type { Sandbox } from '../sandbox/backend.ts';
import { taskPaths, type TaskPaths } from '../store/layout.ts';
import { runClean } from '../exec/clean-run.ts';
import type { LayersWish, PreparedLayers } from '../workspace/prepare-snapshot.ts';
import type { RunPlan } from '../run/run-plan.ts';
import type { HostContext } from '../run/host-context.ts';

// Commands get an empty standard input. A marked line announces each command; the mark is random, so no command can forge it.
const SCRIPT = `mark=$1; shift; n=0
for command in "$@"; do
  printf '%s%s\\n' "$mark" "$n"; n=$((n + 1))
  sh -c "$command" < /dev/null || exit
done`;

/** Throws setup.failed unless every command succeeds. Returns the paths of the workspace, all of them below `directory`. */
export async function runSetup(
  context: HostContext,
  plan: RunPlan,
  base: PreparedLayers,
  directory: string,
  want: LayersWish,
): Promise<TaskPaths> {
  const { run: commands, timeoutSeconds } = plan.config.setup;
  const paths = taskPaths(directory, 'setup');
  const mark = `ags-setup-${randomBytes(9).toString('base64url')} `;
  const reader = readOutput(mark, commands, want);
  const outcome = await runClean(context, plan, base, paths, {
    task: want.task,
    command: ['sh', '-c', SCRIPT, 'sh', mark, ...commands],
    seconds: timeoutSeconds,
    onStart: (sandbox) => reader.read(sandbox),
    notice: want.onOutput,
    services: null,
    signal: want.signal,
  });
  await reader.done();
  want.signal.throwIfAborted();
  if (outcome.exitCode === 0 && outcome.ended === null) return paths;
  throw failed(commands[reader.command()] ?? '', outcome, reader.last());
}

const LAST_LINES = 20;
const LINE_CHARACTERS = 2000;

interface OutputReader {
  read(sandbox: Sandbox): void;
  done(): Promise<void>;
  /** Index of the command that ran last. */
  command(): number;
  last(): readonly string[];
}

function readOutput(mark: string, commands: readonly string[], want: LayersWish): OutputReader {
  let command = 0;
  const last: string[] = [];
  const ends: Promise<void>[] = [];
  const follow = async (stream: NodeJS.ReadableStream): Promise<void> => {
    for await (const line of createInterface({ input: stream })) {
      if (line.startsWith(mark)) {
        command = Number(line.slice(mark.length));
        want.onStep({ kind: 'setup', text: `Setup: ${visible(commandTitle(commands[command] ?? ''))}` });
        continue;
      }
      const text = line.slice(0, LINE_CHARACTERS);
      last.push(text);
      if (last.length > LAST_LINES) last.shift();
      want.onOutput(text);
    }
  };
  return {
    read(sandbox) {
      for (const stream of [sandbox.stdout, sandbox.stderr]) if (stream !== null) ends.push(follow(stream));
      for (const one of ends) one.catch(() => sandbox.kill());
    },
    done: async () => void (await Promise.all(ends)),
    command: () => command,
    last: () => last,
  };
}

function failed(
  command: string,
  outcome: { exitCode: number; ended: string | null },
  lines: readonly string[],
): AgsError {
  const signal = Object.entries(constants.signals).find(([, number]) => number === outcome.exitCode - 128)?.[0];
  const how =
    outcome.ended?.replace('limits.time', 'setup.timeout') ??
    `It exited with code ${outcome.exitCode}${signal === undefined ? '' : ` (${signal})`}.`;
  const output = lines.map((line) => `  ${visible(line)}`).join('\n');
  return new AgsError(
    'setup.failed',
    `The setup command "${visible(commandTitle(command))}" failed. ${how}${output === '' ? '' : `\n${output}`}`,
    {
      hint: 'Try the command: ags exec -- sh -c \'<command>\', then correct "setup" in ags.yaml. Nothing was kept; the next start runs setup again.',
      details: { command, exitCode: outcome.exitCode, lines },
    },
  );
}
