// agents/tool-hook.ts: the hooks of agents that have those of Claude Code: PreToolUse, PostToolUse, Stop, with the same JSON.
import type { Action } from '../protocol/agent-event.ts';
import type { GateRequest } from '../protocol/hook.ts';
import type { ReadHook } from './agent.ts';
import { asObject, textOf } from './json.ts';

export const TOOL_HOOKS = ['PreToolUse', 'PostToolUse', 'Stop'] as const;

/** A call that cannot be understood is asked about all the same. */
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
        // It is sent back to work once: whoever was refused twice would never end.
        return asObject(json)?.['stop_hook_active'] === true ? null : STOP;
      default:
        return null;
    }
  };
}

const STOP: GateRequest = { when: 'stop', tool: '', actions: [], input: {} };
