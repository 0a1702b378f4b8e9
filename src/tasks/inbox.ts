// tasks/inbox.ts: messages for an agent that it has not had yet. One file each, so that none is lost when a runner dies.
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { replaceFile } from '../lib/files.ts';
import type { TaskPaths } from '../store/layout.ts';

type Inbox = Pick<TaskPaths, 'inbox'>;

export function putMessage({ inbox }: Inbox, text: string, nowMs: number): void {
  mkdirSync(inbox, { recursive: true, mode: 0o700 });
  const number = waiting({ inbox }).length;
  replaceFile(join(inbox, `${String(nowMs).padStart(15, '0')}-${String(number).padStart(4, '0')}.txt`), text, {
    durable: true,
  });
}

/** All of them as one, oldest first; null: there is none. They are gone afterwards. */
export function takeMessage({ inbox }: Inbox): string | null {
  const names = waiting({ inbox });
  if (names.length === 0) return null;
  const text = names.map((name) => readFileSync(join(inbox, name), 'utf8')).join('\n\n');
  for (const name of names) rmSync(join(inbox, name), { force: true });
  return text;
}

export function waiting({ inbox }: Inbox): string[] {
  return existsSync(inbox)
    ? readdirSync(inbox)
        .filter((name) => name.endsWith('.txt'))
        .toSorted()
    : [];
}
