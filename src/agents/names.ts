// agents/names.ts: the names of all agents with a program of their own, apart from the agents themselves: `ags exec` reads these alone.

/** Also the names of their programs. A test compares them with the agents. */
export const PROGRAM_NAMES: readonly string[] = ['claude', 'codex', 'gemini', 'qwen', 'opencode'];
