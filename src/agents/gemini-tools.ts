// agents/gemini-tools.ts: the tools of Gemini CLI, and of Qwen Code, which comes from it, in our words.
import type { Action } from '../protocol/agent-event.ts';
import type { GateRequest } from '../protocol/hook.ts';
import { asObject, cut, listOf, rawInput, textOf } from './json.ts';

export function actionOf(tool: string, input: unknown): Action {
  const path = textOf(input, 'file_path', 'absolute_path', 'dir_path', 'path') ?? '';
  switch (tool) {
    case 'run_shell_command':
      return { kind: 'command', command: textOf(input, 'command') ?? '' };
    case 'write_file':
      return { kind: 'write', path, change: 'write', content: textOf(input, 'content') ?? '' };
    case 'replace':
    case 'edit':
      return { kind: 'write', path, change: 'edit', content: textOf(input, 'new_string') ?? '' };
    case 'notebook_edit':
      return {
        kind: 'write',
        path: textOf(input, 'notebook_path') ?? path,
        change: 'edit',
        content: textOf(input, 'new_source') ?? '',
      };
    case 'read_file':
    case 'list_directory':
      return { kind: 'read', path };
    case 'read_many_files':
      return { kind: 'read', path: listOf(asObject(input)?.['include']).join(' ') };
    case 'glob':
    case 'grep_search':
      return { kind: 'search', what: textOf(input, 'pattern') ?? '' };
    case 'google_web_search':
    case 'web_search':
      return { kind: 'search', what: textOf(input, 'query') ?? '' };
    case 'web_fetch':
      return { kind: 'fetch', url: textOf(input, 'url', 'prompt') ?? '' };
    default:
      return { kind: 'other', input: rawInput(input) };
  }
}

/** Before a call: one that cannot be understood is asked about all the same. After it: only if it wrote. */
export function toolRequest(when: 'before' | 'after', json: unknown): GateRequest | null {
  const tool = textOf(json, 'tool_name') ?? '';
  const input = asObject(json)?.['tool_input'] ?? {};
  const action = actionOf(tool, input);
  return when === 'before' || action.kind === 'write' ? { when, tool, actions: [action], input } : null;
}

/** It is sent back to work once: whoever is refused again and again would never end. */
export function stopRequest(json: unknown): GateRequest | null {
  if (asObject(json)?.['stop_hook_active'] === true) return null;
  return { when: 'stop', tool: '', actions: [], input: {} };
}

/** What is shown of the content of a message's part: text, or a list of parts that have one. */
export function outputOf(content: unknown): string {
  if (typeof content === 'string') return cut(content);
  return cut(
    listOf(content)
      .map((part) => textOf(part, 'text') ?? '')
      .join(''),
  );
}
