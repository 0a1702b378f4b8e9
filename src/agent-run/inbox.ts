// agent-run/inbox.ts: messages for an agent that it has not had yet. One file each, so that none is lost when a runner dies.
// Invariant: a message goes to the agent or is withdrawn, never both: whoever renames its file has it.
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { replaceFile } from '../lib/files.ts';
import type { TaskPaths } from '../store/layout.ts';

type Inbox = Pick<TaskPaths, 'inbox'>;

export interface WaitingMessage {
  readonly id: string;
  readonly text: string;
  readonly atMs: number;
}

/** After all that are there, whatever the clock says: it may have been put back since. */
export function putMessage({ inbox }: Inbox, text: string, nowMs: number): void {
  mkdirSync(inbox, { recursive: true, mode: 0o700 });
  const [lastMs = 0, lastPlace = 0] = (ids(inbox).at(-1) ?? '').split('-').map(Number);
  const [ms, place] = nowMs > lastMs ? [nowMs, 0] : [lastMs, lastPlace + 1];
  replaceFile(join(inbox, `${String(ms).padStart(15, '0')}-${String(place).padStart(4, '0')}.txt`), text, {
    durable: true,
  });
}

export interface TakenMessage {
  readonly text: string;
  /** The agent has it. Until then it is kept: a runner that dies before that has lost nothing. */
  drop(): void;
}

/** All of them as one, oldest first; null: there is none. For the runner alone. */
export function takeMessage({ inbox }: Inbox): TakenMessage | null {
  for (const id of waitingIds({ inbox })) claim(inbox, id, TAKEN);
  // Also those that a runner took before this one, and died.
  const names = ids(inbox, TAKEN).map((id) => join(inbox, `${id}${TAKEN}`));
  if (names.length === 0) return null;
  return {
    text: names.map((name) => readFileSync(name, 'utf8')).join('\n\n'),
    drop() {
      for (const name of names) rmSync(name, { force: true });
    },
  };
}

/** What it said; null: the agent has it already, or it was withdrawn before. */
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
    // Somebody has just had it.
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
