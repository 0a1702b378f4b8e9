// tasks/inbox.ts: messages for an agent that it has not had yet. One file each, so that none is lost when a runner dies.
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

export function putMessage({ inbox }: Inbox, text: string, nowMs: number): void {
  mkdirSync(inbox, { recursive: true, mode: 0o700 });
  const taken = new Set(waitingIds({ inbox }));
  const stem = String(nowMs).padStart(15, '0');
  let id = '';
  for (let i = 0; id === '' || taken.has(id); i++) id = `${stem}-${String(i).padStart(4, '0')}`;
  replaceFile(join(inbox, `${id}.txt`), text, { durable: true });
}

/** All of them as one, oldest first; null: there is none. They are gone afterwards. For the runner alone. */
export function takeMessage({ inbox }: Inbox): string | null {
  for (const id of waitingIds({ inbox })) claim(inbox, id, TAKEN);
  // Also those that a runner took before this one, and died.
  const names = list({ inbox }, TAKEN).map((id) => join(inbox, `${id}${TAKEN}`));
  if (names.length === 0) return null;
  const text = names.map((name) => readFileSync(name, 'utf8')).join('\n\n');
  for (const name of names) rmSync(name, { force: true });
  return text;
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

const waitingIds = (inbox: Inbox): string[] => list(inbox, WAITING);

function list({ inbox }: Inbox, kind: string): string[] {
  return existsSync(inbox)
    ? readdirSync(inbox)
        .filter((name) => /^\d{15}-\d{4}\./.test(name) && name.endsWith(kind))
        .map((name) => name.slice(0, -kind.length))
        .toSorted()
    : [];
}
