// hooks/ready/log.ts: records every action as one line of JSON in the task's directory, out of reach of sandboxes.
// Invariant: the file is bounded; a full one is kept once, as `.1`.
import { appendFileSync, renameSync, statSync } from 'node:fs';
import type { HookInput } from '../../protocol/hook.ts';
import { ALLOWED, type Answer } from '../hook.ts';

const MOST_BYTES = 64 * 2 ** 20;
/** Longest text in a line; a cut text has its full length noted. */
const MOST_TEXT = 16 * 2 ** 10;

export function logAction(file: string, now: () => Date, input: HookInput): Answer {
  const { hook, tool, actions, task, run, agent } = input;
  const line = JSON.stringify(
    { at: now().toISOString(), task, run, agent, hook, tool, actions },
    (_key, value: unknown) =>
      typeof value === 'string' && value.length > MOST_TEXT
        ? `${value.slice(0, MOST_TEXT)}... (${value.length} characters)`
        : value,
  );
  if ((statSync(file, { throwIfNoEntry: false })?.size ?? 0) > MOST_BYTES) renameSync(file, `${file}.1`);
  appendFileSync(file, `${line}\n`, { mode: 0o600 });
  return ALLOWED;
}
