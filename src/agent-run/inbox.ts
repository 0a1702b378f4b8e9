// agent-run/inbox.ts: stores messages that the agent has not received yet, one file each, so that none is lost when a runner dies.
// Invariant: a message is delivered or withdrawn, never both: the process that renames its file owns it.
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { replaceFile } from '../lib/files.ts';
import type { TaskPaths } from '../store/layout.ts';

type Inbox = Pick<TaskPaths, 'inbox'>;

/** For an agent that goes on without a message of the user. */
export const GO_ON = 'Go on where you were, until the goal is reached.';

export interface WaitingMessage {
  readonly id: string;
  readonly text: string;
  readonly atMs: number;
}

/** Sorts after all waiting messages, even if the clock was set back. */
export function putMessage({ inbox }: Inbox, text: string, nowMs: number): void {
  mkdirSync(inbox, { recursive: true, mode: 0o700 });
  const [lastMs = 0, lastCount = 0] = (ids(inbox).at(-1) ?? '').split('-').map(Number);
  const [ms, count] = nowMs > lastMs ? [nowMs, 0] : [lastMs, lastCount + 1];
  replaceFile(join(inbox, `${String(ms).padStart(15, '0')}-${String(count).padStart(4, '0')}.txt`), text, {
    durable: true,
  });
}

export interface TakenMessage {
  readonly text: string;
  /** Deletes it. Call it once the agent has the message, so that a runner that dies before loses nothing. */
  drop(): void;
}

/** Joins all messages, oldest first; null: there is none. Only the runner calls this. */
export function takeMessage({ inbox }: Inbox): TakenMessage | null {
  for (const id of waitingIds({ inbox })) claim(inbox, id, TAKEN);
  // Includes messages that an earlier runner took before it died.
  const names = ids(inbox, TAKEN).map((id) => join(inbox, `${id}${TAKEN}`));
  if (names.length === 0) return null;
  return {
    text: names.map((name) => readFileSync(name, 'utf8')).join('\n\n'),
    drop() {
      for (const name of names) rmSync(name, { force: true });
    },
  };
}

/** Returns the text; null: the agent has it already, or it was withdrawn before. */
export function withdrawMessage({ inbox }: Inbox, id: string): string | null {
  if (!waitingIds({ inbox }).includes(id) || !claim(inbox, id, WITHDRAWN)) return null;
  const path = join(inbox, `${id}${WITHDRAWN}`);
  const text = readFileSync(path, 'utf8');
  rmSync(path, { force: true });
  return text;
}

export function waitingMessages({ inbox }: Inbox): WaitingMessage[] {
  return waitingIds({ inbox }).flatMap((id) => {
    const text = read(join(inbox, `${id}.txt`));
    return text === null ? [] : [{ id, text, atMs: Number.parseInt(id, 10) }];
  });
}

const [WAITING, TAKEN, WITHDRAWN] = ['.txt', '.taken', '.withdrawn'] as const;

function claim(inbox: string, id: string, as: string): boolean {
  try {
    renameSync(join(inbox, `${id}${WAITING}`), join(inbox, `${id}${as}`));
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false;
    throw error;
  }
}

function read(path: string): string | null {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    // It was just delivered or withdrawn.
    return null;
  }
}

const waitingIds = ({ inbox }: Inbox): string[] => ids(inbox, WAITING);

function ids(inbox: string, kind = ''): string[] {
  return existsSync(inbox)
    ? readdirSync(inbox)
        .filter((name) => /^\d{15}-\d{4}\./.test(name) && name.endsWith(kind))
        .map((name) => name.replace(/\..*$/, ''))
        .toSorted()
    : [];
}
