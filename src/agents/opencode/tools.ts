// agents/opencode/tools.ts: turns tool calls of opencode into actions.
import type { Action } from '../../protocol/agent-event.ts';
import type { ReadHook } from '../agent.ts';
import { writesOf } from '../codex/tools.ts';
import { asObject, rawInput, textOf } from '../json.ts';

export function actionsOf(tool: string, input: unknown): Action[] {
  const path = textOf(input, 'filePath', 'path') ?? '';
  switch (tool) {
    case 'bash':
    case 'shell':
      return [{ kind: 'command', command: textOf(input, 'command') ?? '' }];
    case 'write':
      return [{ kind: 'write', path, change: 'write', content: textOf(input, 'content') ?? '' }];
    case 'edit':
      return [{ kind: 'write', path, change: 'edit', content: textOf(input, 'newString') ?? '' }];
    case 'patch':
    case 'apply_patch': {
      const writes = writesOf(textOf(input, 'patchText') ?? '');
      return writes.length > 0 ? writes : [{ kind: 'other', input: rawInput(input) }];
    }
    case 'read':
    case 'list':
      return [{ kind: 'read', path }];
    case 'glob':
    case 'grep':
      return [{ kind: 'search', what: textOf(input, 'pattern') ?? '' }];
    case 'websearch':
      return [{ kind: 'search', what: textOf(input, 'query') ?? '' }];
    case 'webfetch':
      return [{ kind: 'fetch', url: textOf(input, 'url') ?? '' }];
    default:
      return [{ kind: 'other', input: rawInput(input) }];
  }
}

/** Reads requests of our plugin. Before a call: hooks also judge calls that cannot be parsed. After a call: only if it wrote. */
export const readHook: ReadHook = (event, json) => {
  if (event !== 'before' && event !== 'after') return null;
  const tool = textOf(json, 'tool') ?? '';
  const input = asObject(json)?.['args'] ?? {};
  const actions = actionsOf(tool, input);
  if (event === 'after' && !actions.some(({ kind }) => kind === 'write')) return null;
  return { when: event, tool, actions, input };
};
