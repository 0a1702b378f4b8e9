// agents/agents.ts: all agents that ags knows. To add one, add its file and a line here.
import type { Agent } from './agent.ts';
import { claude } from './claude/claude.ts';
import { codex } from './codex/codex.ts';
import { demo } from './demo/demo.ts';
import { gemini } from './gemini/gemini.ts';
import { opencode } from './opencode/opencode.ts';
import { qwen } from './qwen/qwen.ts';

export const AGENTS: readonly Agent[] = [claude, codex, gemini, qwen, opencode, demo];

export function agentNamed(name: string): Agent | undefined {
  return AGENTS.find((agent) => agent.name === name);
}
