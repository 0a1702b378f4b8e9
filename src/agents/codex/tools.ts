// agents/codex/tools.ts: turns tool calls of Codex CLI into actions.
import type { Action } from '../../protocol/agent-event.ts';
import { rawInput, textOf } from '../json.ts';
import { readToolHook } from '../tool-hook.ts';

/** Tool names are those of its hooks. One call of apply_patch may write several files. */
export function actionsOf(tool: string, input: unknown): readonly Action[] {
  const command = textOf(input, 'command', 'cmd');
  if (command !== null && tool === 'Bash') return [{ kind: 'command', command }, ...writesOf(command)];
  const writes = tool === 'apply_patch' && command !== null ? writesOf(command) : [];
  return writes.length > 0 ? writes : [{ kind: 'other', input: rawInput(input) }];
}

export const readHook = readToolHook(actionsOf);

const HEADER = /^\s*\*\*\* (Add|Update|Delete) File:(.*)$/i;
const MOVE = /^\s*\*\*\* Move to:(.*)$/i;
const CHANGES = { add: 'write', update: 'edit', delete: 'delete' } as const;

/**
 * The files of a patch, each with its part. Headers are parsed as leniently as Codex does: a line too many costs one more
 * question, a line too few would be a file that no hook sees.
 */
export function writesOf(patch: string): Action[] {
  const parts: { path: string; change: 'write' | 'edit' | 'delete'; lines: string[] }[] = [];
  for (const line of patch.split('\n')) {
    const header = HEADER.exec(line);
    const move = MOVE.exec(line);
    if (header !== null) {
      const kind = header[1]?.toLowerCase() as keyof typeof CHANGES;
      parts.push({ path: header[2]?.trim() ?? '', change: CHANGES[kind], lines: [] });
    } else if (move !== null) {
      const from = parts.pop();
      if (from !== undefined) parts.push({ ...from, change: 'delete', lines: [] });
      parts.push({ path: move[1]?.trim() ?? '', change: 'edit', lines: [] });
    }
    if (!/^\s*\*\*\* End Patch/i.test(line)) parts.at(-1)?.lines.push(line);
  }
  return parts.map(({ path, change, lines }) => ({
    kind: 'write',
    path,
    change,
    ...(change === 'delete' ? {} : { content: lines.join('\n') }),
  }));
}

/** The command inside "/bin/bash -lc 'cat a'". */
export function plainCommand(command: string): string {
  const script = /^\S*\/(?:ba|da|z)?sh -l?c ([^]+)$/.exec(command)?.[1];
  return script === undefined ? command : (unquoted(script) ?? script);
}

const PARTS = /'([^']*)'|"((?:[^"\\]|\\[^])*)"|\\([^])|([^\s'"\\]+)/gy;

/** One shell word, quoted as a whole or in parts. null: more than one word, or none. */
function unquoted(word: string): string | null {
  let [plain, end] = ['', 0];
  for (const [part, single, double, escaped, bare] of word.matchAll(PARTS)) {
    plain += single ?? double?.replaceAll(/\\(["\\$`])/g, '$1') ?? escaped ?? bare ?? '';
    end += part.length;
  }
  return end === word.length ? plain : null;
}
