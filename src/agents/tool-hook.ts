// agents/tool-hook.ts: the hooks of agents that have those of Claude Code: PreToolUse, PostToolUse, Stop, with the same JSON.
import type { Action } from '../protocol/agent-event.ts';
import type { GateRequest } from '../protocol/hook.ts';
import type { HookDoor, ReadHook } from './agent.ts';
import { hookCommand } from './hook-command.ts';
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
        // It is sent back to work once: who is refused every time never ends.
        return asObject(json)?.['stop_hook_active'] === true ? null : STOP;
      default:
        return null;
    }
  };
}

const STOP: GateRequest = { when: 'stop', tool: '', actions: [], input: {} };

/** As a command. That it has been sent back once is seen here too: if nobody answers, every answer is a no. */
export function toolHookCommand(door: HookDoor, event: (typeof TOOL_HOOKS)[number]): string {
  const command = hookCommand(door, event);
  if (event !== 'Stop') return command;
  const active = ['"stop_hook_active":true', '"stop_hook_active": true'].map((text) => `*'${text}'*`).join('|');
  return `json=$(cat); case "$json" in ${active}) exit 0;; esac; printf '%s' "$json" | ${command}`;
}
