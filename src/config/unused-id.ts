// config/unused-id.ts: the user ID of root's sandboxes.
// Invariant: it is no account's. Programs of an account with the same ID could look into the sandbox by /proc, change the work in it, and
// end it.
import { readFileSync } from 'node:fs';
import { USER } from './defaults.ts';

/** IDs that no distribution gives to anyone: https://systemd.io/UIDS-GIDS/ */
const OTHERS = Array.from({ length: 100 }, (_, i) => 61_001 + i);

/** The usual ID, or another one if an account or a group has it. */
export function unusedId(files: readonly string[] = ['/etc/passwd', '/etc/group']): number {
  const used = new Set(files.flatMap(idsIn));
  return [USER, ...OTHERS].find((id) => !used.has(id)) ?? USER;
}

function idsIn(file: string): number[] {
  try {
    return readFileSync(file, 'utf8')
      .split('\n')
      .map((line) => Number(line.split(':')[2] ?? 0));
  } catch {
    // A system without accounts.
    return [];
  }
}
