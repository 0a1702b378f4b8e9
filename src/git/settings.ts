// git/settings.ts: reads the user's git settings for a repository. It asks git once, and again only after one of the files has
// changed, because starting git takes a tenth of the time that a sandbox takes.
import { readFileSync, statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { remember } from '../lib/remember.ts';
import { shortHash } from '../lib/short-hash.ts';
import { userGit } from './host-git.ts';

export interface SettingsInput {
  readonly root: string;
  readonly gitDir: string;
  /** Conditional includes may depend on the branch. */
  readonly head: string;
  readonly home: string;
  readonly configHome?: string | undefined;
  readonly cacheDir: string;
}

interface Memory {
  readonly key: string;
  readonly files: readonly (readonly [path: string, stamp: string])[];
  readonly settings: readonly (readonly [string, string])[];
}

/** Returns null if git refuses to read this repository. */
export async function readSettings(input: SettingsInput): Promise<ReadonlyMap<string, string> | null> {
  const key = JSON.stringify([input.root, input.gitDir, input.head, input.home, input.configHome]);
  const file = join(input.cacheDir, `git-${shortHash(input.root)}.json`);
  const memory = recall(file);
  if (memory?.key === key && memory.files.every(([path, stamp]) => stampOf(path) === stamp))
    return new Map(memory.settings);
  const listing = await userGit(['config', '--list', '-z', '--show-origin', '--includes'], {
    cwd: input.root,
    home: input.home,
    configHome: input.configHome,
  });
  if (listing.exitCode !== 0) return null;
  const { origins, settings } = parseListing(listing.stdout, input);
  const files = new Set([...places(input), ...origins]);
  remember(
    file,
    JSON.stringify({
      key,
      files: [...files].map((path) => [path, stampOf(path)] as const),
      settings: [...settings],
    } satisfies Memory),
  );
  return settings;
}

/** The files that git would read, whether they exist or not. */
function places({ gitDir, home, configHome }: SettingsInput): string[] {
  return [
    join(gitDir, 'config'),
    join(gitDir, 'config.worktree'),
    join(home, '.gitconfig'),
    join(configHome ?? join(home, '.config'), 'git/config'),
    '/etc/gitconfig',
    '/usr/local/etc/gitconfig',
  ];
}

// Follows links, because many people keep their settings elsewhere and link to them.
function stampOf(path: string): string {
  const stat = statSync(path, { throwIfNoEntry: false });
  return stat === undefined ? '' : `${stat.mtimeMs} ${stat.ctimeMs} ${stat.size} ${stat.ino}`;
}

/** Rows come in pairs: the origin, then "key\nvalue". The last value of a key counts. */
function parseListing(
  listing: Buffer,
  { root, home }: SettingsInput,
): { origins: string[]; settings: Map<string, string> } {
  const words = listing.toString('utf8').split('\0');
  const origins = new Set<string>();
  const settings = new Map<string, string>();
  for (let i = 0; i + 1 < words.length; i += 2) {
    const origin = words[i] ?? '';
    const file = origin.startsWith('file:') ? resolve(root, origin.slice('file:'.length)) : null;
    if (file !== null) origins.add(file);
    const entry = words[i + 1] ?? '';
    const end = entry.indexOf('\n');
    const key = end < 0 ? entry : entry.slice(0, end);
    const value = end < 0 ? 'true' : entry.slice(end + 1);
    settings.set(key, value);
    // An included file may not exist yet.
    if (file !== null && /^include(if\..*)?\.path$/s.test(key))
      origins.add(resolve(dirname(file), value.replace(/^~(?=\/)/, home)));
  }
  return { origins: [...origins], settings };
}

function recall(file: string): Memory | null {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as Memory;
  } catch {
    return null;
  }
}
