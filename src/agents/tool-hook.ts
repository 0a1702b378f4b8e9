// agents/tool-hook.ts: hooks in the form of Claude Code, which several agents share: PreToolUse, PostToolUse, Stop, with the same JSON.
import type { Action } from '../protocol/agent-event.ts';
import type { GateRequest } from '../protocol/hook.ts';
import type { AgentInput, HookListener, ReadHook } from './agent.ts';
import { hookCommand } from './hook-command.ts';
import { asObject, textOf } from './json.ts';

const TOOL_HOOKS = ['PreToolUse', 'PostToolUse', 'Stop'] as const;
type ToolHookEvent = (typeof TOOL_HOOKS)[number];

/** At the end of a headless turn the runner itself asks the post-stop hooks. */
export function toolHooks(mode: AgentInput['mode']): readonly ToolHookEvent[] {
  return TOOL_HOOKS.filter((event) => mode === 'interactive' || event !== 'Stop');
}

/** Hooks also judge calls that cannot be parsed. */
export function readToolHook(actionsOf: (tool: string, input: unknown) => readonly Action[]): ReadHook {
  return (event, json): GateRequest | null => {
    const tool = textOf(json, 'tool_name') ?? '';
    const input = asObject(json)?.['tool_input'] ?? {};
    switch (event) {
      case 'PreToolUse':
        return { when: 'before', tool, actions: actionsOf(tool, input), input };
      case 'PostToolUse': {
        const actions = actionsOf(tool, input);
        return actions.some(({ kind }) => kind === 'write') ? { when: 'after', tool, actions, input } : null;
      }
      case 'Stop':
        // Sent back to work only once: an agent that is refused every time would never end.
        return asObject(json)?.['stop_hook_active'] === true ? null : STOP;
      default:
        return null;
    }
  };
}

const STOP: GateRequest = { when: 'stop', tool: '', actions: [], input: {} };

/** The shell command. It also detects that the agent was sent back once, because unreachable hooks would refuse every stop. */
export function toolHookCommand(listener: HookListener, event: ToolHookEvent): string {
  const command = hookCommand(listener, event);
  if (event !== 'Stop') return command;
  const active = ['"stop_hook_active":true', '"stop_hook_active": true'].map((text) => `*'${text}'*`).join('|');
  return `json=$(cat); case "$json" in ${active}) exit 0;; esac; printf '%s' "$json" | ${command}`;
}
