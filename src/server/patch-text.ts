// server/patch-text.ts: one file's diff with the header that git writes, so that every patch reader accepts it.
import type { Change } from '../protocol/changes.ts';

export function patchText(change: Change, hunks: string): string {
  const { path, from = path, before, after } = change;
  const lines = [`diff --git ${name(`a/${from}`)} ${name(`b/${path}`)}`];
  if (before === null) lines.push(`new file mode ${after?.mode ?? '100644'}`);
  else if (after === null) lines.push(`deleted file mode ${before.mode}`);
  else if (before.mode !== after.mode) lines.push(`old mode ${before.mode}`, `new mode ${after.mode}`);
  if (change.from !== undefined) lines.push(`rename from ${name(from)}`, `rename to ${name(path)}`);
  if (hunks !== '')
    lines.push(
      `index ${before?.oid ?? ZERO}..${after?.oid ?? ZERO}`,
      `--- ${before === null ? '/dev/null' : name(`a/${from}`)}`,
      `+++ ${after === null ? '/dev/null' : name(`b/${path}`)}`,
    );
  return `${lines.join('\n')}\n${hunks}`;
}

const ZERO = '0'.repeat(40);

/** Quotes a name as git does: control characters, quotes and backslashes become escapes. */
function name(path: string): string {
  if (!/[\0-\x1f"\\\x7f]/.test(path)) return path;
  return `"${path.replaceAll(/[\0-\x1f"\\\x7f]/g, (char) =>
    char === '"' || char === '\\' ? `\\${char}` : `\\${char.charCodeAt(0).toString(8).padStart(3, '0')}`,
  )}"`;
}
