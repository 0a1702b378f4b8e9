// agent-setup/read-settings.ts: reads the user's own settings that an agent may see (`agents.<name>.settings`).
// Invariants: only places that the agent's adapter names are read, so never a credential file; no link is followed; a file in which
// something looks like a secret is refused, and no message repeats it.
import { closeSync, constants, fstatSync, lstatSync, openSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Agent } from '../agents/agent.ts';
import type { SettingsFile, SettingsPlace } from '../agents/settings.ts';
import type { EffectiveConfig } from '../config/effective.ts';
import { errorCode } from '../lib/error-code.ts';
import { visible } from '../lib/sanitize.ts';
import { SECRET_FORMATS } from '../lib/secret-formats.ts';
import { AgsError } from '../protocol/errors.ts';

export function readSettings(home: string, agent: Agent, { agents }: Pick<EffectiveConfig, 'agents'>): SettingsFile[] {
  const files = new Map<string, string>();
  let bytes = 0;
  for (const { path, origin } of agents[agent.name]?.settings ?? []) {
    const refuse = (at: string, problem: string, hint?: string): never => {
      throw new AgsError('config.invalid', `${origin}: ~/${visible(at)} ${problem}`, { hint });
    };
    for (const at of filesAt(home, path, refuse)) {
      const place = agent.settings.find((one) => covers(one, at));
      if (place === undefined)
        return refuse(at, `is not among the settings that ${agent.title} gets from you.`, hintFor(agent));
      const text = readText(join(home, at), at, refuse);
      // Pictures and the like.
      if (text === null) continue;
      const content = partOf(place, text, at, refuse);
      refuseSecrets(content, text, at, refuse);
      bytes += content.length;
      files.set(at, content);
      if (files.size > MOST_FILES || bytes > MOST_BYTES)
        refuse(path, `is too much: at most ${MOST_FILES} files and ${MOST_BYTES / 2 ** 20} MB of settings are shown.`);
    }
  }
  return [...files].map(([path, content]) => ({ path, content }));
}

type Refuse = (at: string, problem: string, hint?: string) => never;

const MOST_FILES = 200;
const MOST_BYTES = 2 * 2 ** 20;
const MOST_DEPTH = 8;
const LEFT_OUT: readonly string[] = ['.git', 'node_modules', '.DS_Store', '__pycache__'];

function covers({ path }: SettingsPlace, at: string): boolean {
  return path.endsWith('/') ? at.startsWith(path) : at === path;
}

function hintFor({ settings }: Agent): string {
  return settings.length === 0
    ? 'It gets none.'
    : `It gets: ${settings.map(({ path }) => `~/${path}`).join(', ')}. See docs/agents/settings.md`;
}

/** The path itself, or the files below it. */
function filesAt(home: string, path: string, refuse: Refuse): string[] {
  const names = path.split('/').filter((name) => name !== '');
  for (let i = 1; i <= names.length; i++) {
    const at = names.slice(0, i).join('/');
    const kind = kindOf(join(home, at), at, refuse);
    if (kind === 'file' && i < names.length) return refuse(at, 'is not a directory.');
    if (i === names.length) return kind === 'file' ? [at] : below(home, at, refuse, 0);
  }
  return refuse('', 'as a whole is never shown.');
}

function below(home: string, directory: string, refuse: Refuse, depth: number): string[] {
  if (depth > MOST_DEPTH) return refuse(directory, 'is nested too deeply.');
  return readdirSync(join(home, directory))
    .filter((name) => !LEFT_OUT.includes(name))
    .toSorted()
    .flatMap((name) => {
      const at = `${directory}/${name}`;
      return kindOf(join(home, at), at, refuse) === 'file' ? [at] : below(home, at, refuse, depth + 1);
    });
}

function kindOf(path: string, at: string, refuse: Refuse): 'file' | 'directory' {
  let stat: ReturnType<typeof lstatSync>;
  try {
    stat = lstatSync(path);
  } catch (error) {
    return refuse(at, errorCode(error) === 'ENOENT' ? 'does not exist.' : `cannot be read (${errorCode(error)}).`);
  }
  if (stat.isSymbolicLink()) return refuse(at, 'is a link, and links are not followed.', 'Put a copy there.');
  if (stat.isDirectory()) return 'directory';
  return stat.isFile() ? 'file' : refuse(at, 'is not a regular file.');
}

/** null: it is not text. */
function readText(path: string, at: string, refuse: Refuse): string | null {
  let fd: number;
  try {
    fd = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (error) {
    return refuse(at, `cannot be read (${errorCode(error)}).`);
  }
  try {
    const stat = fstatSync(fd);
    if (!stat.isFile()) return refuse(at, 'is not a regular file.');
    if (stat.size > MOST_BYTES) return refuse(at, `is larger than ${MOST_BYTES / 2 ** 20} MB.`);
    const bytes = readFileSync(fd);
    return bytes.includes(0) ? null : new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch (error) {
    if (error instanceof AgsError) throw error;
    return null;
  } finally {
    closeSync(fd);
  }
}

function partOf({ part }: SettingsPlace, text: string, at: string, refuse: Refuse): string {
  if (part === undefined) return text;
  try {
    return part(text);
  } catch (error) {
    // A parser's message repeats the text around the error.
    return refuse(
      at,
      `cannot be used: ${error instanceof SyntaxError ? 'it is not valid JSON' : (error as Error).message}.`,
    );
  }
}

/** Names of secrets, also as parts of a name: ACME_TOKEN, --api-key, x-key, dbPassword. */
const NAME =
  /[\w-]{0,64}(?:token|secret|passw(?:or)?d|passwd|api[_-]?key|(?:access|private|signing|service)[_-]?key|[_-](?:key|pat|pass|pwd)(?![a-z0-9])|authorization|credential)[\w-]{0,64}/
    .source;
/** Without the name of a variable: "Bearer ${ACME_TOKEN}" and "$ACME_TOKEN" hold no secret. */
const PLAIN = /(?!\$\w+(?:["'\s]|$))(?:(?!\$\{|\{env:)[^\s"'&]){8,4096}/.source;
const TEXT = /(?!(?:bearer |basic )?\$\w+["'])(?:(?!\$\{|\{env:)[^"'\n]){8,4096}/.source;

/** In settings, a name that says that its value is secret: as a key, a flag with the next argument, a flag, in a URL, a header. */
const NAMED_SECRETS = [
  `["']?${NAME}["']?\\s{0,5}[:=]\\s{0,5}["']${TEXT}["']`,
  `["']--?${NAME}["']\\s{0,5},\\s{0,60}["'](?![/~.-])${TEXT}["']`,
  `--?${NAME}=${PLAIN}`,
  `[?&](?:${NAME}|key|sig)=${PLAIN}`,
  `authorization: *(?:bearer|basic|token) +${PLAIN}`,
].map((like) => ({ is: 'a secret, by its name', like: new RegExp(like, 'i') }));

function refuseSecrets(content: string, whole: string, at: string, refuse: Refuse): void {
  const named = /\.(?:json|toml)$/.test(at) ? NAMED_SECRETS : [];
  for (const { is, like } of [...SECRET_FORMATS, ...named]) {
    const found = like.exec(content)?.[0];
    if (found === undefined) continue;
    // A part is written anew, so blanks may differ.
    const value = whole.includes(found)
      ? found
      : (/[^"'\s:=]{8,}["']?$/.exec(found)?.[0].replace(/["']$/, '') ?? found);
    const index = whole.indexOf(value);
    const line = index < 0 ? '' : `:${whole.slice(0, index).split('\n').length}`;
    refuse(
      `${at}${line}`,
      `holds what looks like ${is}, and a sandbox must not see it.`,
      'Take it out there. A program inside can use a secret without seeing it: see "secrets" in the configuration.',
    );
  }
}
