// agents/claude/tools.ts: turns tool calls of Claude Code into actions.
import type { Action } from '../../protocol/agent-event.ts';
import { asObject, cut, listOf, rawInput, textOf } from '../json.ts';
import { readToolHook } from '../tool-hook.ts';

export function actionOf(tool: string, input: unknown): Action {
  const path = textOf(input, 'file_path', 'notebook_path', 'path') ?? '';
  switch (tool) {
    case 'Bash':
    case 'Monitor':
      return { kind: 'command', command: textOf(input, 'command') ?? '' };
    case 'Write':
      return { kind: 'write', path, change: 'write', content: textOf(input, 'content') ?? '' };
    case 'Edit':
      return { kind: 'write', path, change: 'edit', content: textOf(input, 'new_string') ?? '' };
    case 'MultiEdit':
      return { kind: 'write', path, change: 'edit', content: newParts(input) };
    case 'NotebookEdit':
      return { kind: 'write', path, change: 'edit', content: textOf(input, 'new_source') ?? '' };
    case 'Read':
    case 'LS':
      return { kind: 'read', path };
    case 'Glob':
    case 'Grep':
      return { kind: 'search', what: textOf(input, 'pattern') ?? '' };
    case 'WebSearch':
      return { kind: 'search', what: textOf(input, 'query') ?? '' };
    case 'WebFetch':
      return { kind: 'fetch', url: textOf(input, 'url') ?? '' };
    default:
      return { kind: 'other', input: rawInput(input) };
  }
}

export const WRITING_TOOLS = 'Write|Edit|MultiEdit|NotebookEdit';

export const readHook = readToolHook((tool, input) => [actionOf(tool, input)]);

function newParts(input: unknown): string {
  return listOf(asObject(input)?.['edits'])
    .map((edit) => textOf(edit, 'new_string') ?? '')
    .join('\n');
}

/** For the event log, which should not hold whole files. */
export function shortened(action: Action): Action {
  switch (action.kind) {
    case 'command':
      return { ...action, command: cut(action.command) };
    case 'write':
      return action.content === undefined ? action : { ...action, content: cut(action.content) };
    case 'read':
    case 'search':
    case 'fetch':
    case 'other':
      return action;
  }
}

/** The output of a tool: a text, or parts of which some are text. */
export function outputOf(content: unknown): string {
  if (typeof content === 'string') return content;
  return listOf(content)
    .map((part) => textOf(part, 'text') ?? `[${textOf(part, 'type') ?? 'part'}]`)
    .join('\n');
}
