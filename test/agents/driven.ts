// test/agents/driven.ts: all agents whose real programs are tested, with the tool calls that write a file and run a command.
import type { Agent } from '../../src/agents/agent.ts';
import { claude } from '../../src/agents/claude/claude.ts';
import { codex } from '../../src/agents/codex/codex.ts';
import { gemini } from '../../src/agents/gemini/gemini.ts';
import { opencode } from '../../src/agents/opencode/opencode.ts';
import { qwen } from '../../src/agents/qwen/qwen.ts';
import { CALLERS, type Caller } from '../harness.ts';
import type { Turn } from '../model/scenario.ts';

type Call = NonNullable<Turn['call']>;

export interface Driven {
  readonly agent: Agent;
  /** To save time, only one agent runs both as root and as an ordinary user. */
  readonly callers: readonly Caller[];
  /** A call that writes "hi\n". */
  write(project: string, path: string): Call;
  run(command: string): Call;
}

/** Two agents print this on a machine without ripgrep. */
export const MISSES_RIPGREP = /^ripgrep (?:is )?not available/i;

export const DRIVEN: readonly Driven[] = [
  {
    agent: claude,
    callers: CALLERS,
    write: (project, path) => ({ tool: 'Write', input: { file_path: `${project}/${path}`, content: 'hi\n' } }),
    run: (command) => ({ tool: 'Bash', input: { command, description: 'a command' } }),
  },
  {
    agent: codex,
    callers: ['user'],
    write: (_, path) => ({
      tool: 'apply_patch',
      input: { input: `*** Begin Patch\n*** Add File: ${path}\n+hi\n*** End Patch\n` },
    }),
    run: (cmd) => ({ tool: 'exec_command', input: { cmd, yield_time_ms: 30_000 } }),
  },
  {
    agent: gemini,
    callers: ['user'],
    write: (_, path) => ({ tool: 'write_file', input: { file_path: path, content: 'hi\n' } }),
    run: (command) => ({ tool: 'run_shell_command', input: { command, description: 'a command' } }),
  },
  {
    agent: qwen,
    callers: ['user'],
    write: (project, path) => ({ tool: 'write_file', input: { file_path: `${project}/${path}`, content: 'hi\n' } }),
    run: (command) => ({
      tool: 'run_shell_command',
      input: { command, description: 'a command', is_background: false },
    }),
  },
  {
    agent: opencode,
    callers: ['user'],
    write: (project, path) => ({ tool: 'write', input: { filePath: `${project}/${path}`, content: 'hi\n' } }),
    run: (command) => ({ tool: 'bash', input: { command, description: 'a command' } }),
  },
];

/** For `describe.each` and `test.each`: "$title as $caller". */
export const BY_CALLER = DRIVEN.flatMap((driven) =>
  driven.callers.map((caller) => ({ ...driven, caller, title: driven.agent.title })),
);
