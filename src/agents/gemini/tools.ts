// agents/gemini/tools.ts: turns tool calls of Gemini CLI, and of its fork Qwen Code, into actions.
import type { Action } from '../../protocol/agent-event.ts';
import type { ReadHook } from '../agent.ts';
import { asObject, cut, listOf, rawInput, textOf } from '../json.ts';
import { readToolHook } from '../tool-hook.ts';

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

/** Reads hooks with the JSON of Claude Code's; `names` maps event names. */
export function readHookAs(names: Readonly<Record<string, string>>): ReadHook {
  const read = readToolHook((tool, input) => [actionOf(tool, input)]);
  return (event, json) => read(Object.hasOwn(names, event) ? (names[event] ?? '') : '', json);
}

/** The text of a message's part: a string, or a list of parts with text. */
export function outputOf(content: unknown): string {
  if (typeof content === 'string') return cut(content);
  return cut(
    listOf(content)
      .map((part) => textOf(part, 'text') ?? '')
      .join(''),
  );
}
