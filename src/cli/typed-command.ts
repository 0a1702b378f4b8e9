// cli/typed-command.ts: messages name the command as it can be typed here: "./ags" in a clone, "npx ags" in a package. Only lines of
// ags itself are changed, never text of an agent or a program.
import { realpathSync } from 'node:fs';
import { join, relative } from 'node:path';
import { shellQuote, shortPath } from './terminal/format.ts';
import { VERBS } from './verbs/table.ts';

interface Place {
  readonly cwd: string;
  readonly home: string;
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** Messages of ags begin with "ags: ". Without AGS_STARTED_AS, no shell started it, and nobody typed anything. */
export function asTyped(message: string, place: Place): string {
  const started = place.env['AGS_STARTED_AS'];
  if (started === undefined || !message.startsWith('ags: ') || !COMMANDS.test(message)) return message;
  const typed = typedCommand(started, place);
  return typed === 'ags' ? message : message.replaceAll(COMMANDS_ALL, typed);
}

const PATTERN = String.raw`(?<![\w/.-])ags(?= (?:${Object.keys(VERBS).join('|')}|help|--\w)\b)`;
const COMMANDS = new RegExp(PATTERN);
const COMMANDS_ALL = new RegExp(PATTERN, 'g');

function typedCommand(started: string, { cwd, home, env }: Place): string {
  const own = realPath(started);
  for (const dir of (env['PATH'] ?? '').split(':')) {
    const found = dir === '' ? null : realPath(join(dir, 'ags'));
    if (found === null) continue;
    if (found !== own) break;
    if (!dir.endsWith('/node_modules/.bin')) return 'ags';
    return dir.includes('/_npx/') ? 'npx @ags/cli' : 'npx ags';
  }
  const path = join(cwd, relative(cwd, started));
  const near = relative(cwd, path);
  if (!near.startsWith('..')) return shellQuote(`./${near}`);
  const short = shortPath(path, home);
  return short.startsWith('~/') ? `~/${shellQuote(short.slice(2))}` : shellQuote(path);
}

function realPath(path: string): string | null {
  try {
    return realpathSync(path);
  } catch {
    return null;
  }
}
