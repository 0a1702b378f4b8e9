// git/index-entries.ts: entries of a work tree's index: what they are, and to set some of them. Nothing is read from the work tree.
import { cannotWrite, ownerGit } from './owner-git.ts';

export interface IndexEntry {
  readonly mode: string;
  readonly oid: string;
}

export interface IndexListing {
  readonly entries: ReadonlyMap<string, IndexEntry>;
  /** Entries that git does not compare with the work tree: sparse, or assumed to be unchanged. */
  readonly special: ReadonlySet<string>;
  readonly unmerged: ReadonlySet<string>;
}

export async function readIndex(gitDir: string): Promise<IndexListing> {
  const listed = await ownerGit(gitDir, ['ls-files', '-s', '-v', '-z'], { env: { GIT_WORK_TREE: '/nonexistent' } });
  if (listed.exitCode !== 0) throw cannotWrite(gitDir, listed.stderr);
  const entries = new Map<string, IndexEntry>();
  const special = new Set<string>();
  const unmerged = new Set<string>();
  for (const row of listed.stdout.toString('utf8').split('\0')) {
    const [, tag, mode, oid, stage, path] = /^(\S) (\d{6}) ([0-9a-f]+) (\d)\t([\s\S]+)$/.exec(row) ?? [];
    if (path === undefined || mode === undefined || oid === undefined) continue;
    if (stage !== '0') unmerged.add(path);
    else entries.set(path, { mode, oid });
    if (tag !== 'H' && stage === '0') special.add(path);
  }
  return { entries, special, unmerged };
}

/** null: no entry. Those that are not named stay as they are. */
export async function setEntries(
  gitDir: string,
  entries: readonly { readonly path: string; readonly entry: IndexEntry | null }[],
  hold?: number,
): Promise<void> {
  if (entries.length === 0) return;
  const zero = '0'.repeat(entries.find((one) => one.entry !== null)?.entry?.oid.length ?? 40);
  // What goes comes first: a file may take the place of a directory.
  const ordered = [...entries.filter((one) => one.entry === null), ...entries.filter((one) => one.entry !== null)];
  const lines = ordered.map(({ path, entry }) => `${entry?.mode ?? '0'} ${entry?.oid ?? zero}\t${path}\0`).join('');
  const set = await ownerGit(gitDir, ['update-index', '-z', '--index-info'], {
    input: Buffer.from(lines),
    env: { GIT_WORK_TREE: '/nonexistent' },
    timeoutMs: 60_000,
    hold,
  });
  if (set.exitCode !== 0) throw cannotWrite(gitDir, set.stderr);
}

/** Which of these files git stores otherwise than they are in the work tree, and by what rule. */
export async function convertedFiles(
  gitDir: string,
  workTree: string,
  settings: ReadonlyMap<string, string>,
  paths: readonly string[],
): Promise<Map<string, string>> {
  const found = new Map<string, string>();
  if (paths.length === 0) return found;
  const asked = await ownerGit(
    gitDir,
    ['--work-tree', workTree, 'check-attr', '-z', '--stdin', 'filter', 'text', 'eol', 'ident', 'working-tree-encoding'],
    { input: Buffer.from(paths.map((path) => `${path}\0`).join('')), timeoutMs: 60_000 },
  );
  if (asked.exitCode !== 0) throw cannotWrite(gitDir, asked.stderr);
  const words = asked.stdout.toString('utf8').split('\0');
  const crlf = settings.get('core.autocrlf') === 'true' || settings.get('core.eol') === 'crlf';
  for (let i = 0; i + 2 < words.length; i += 3) {
    const [path = '', name = '', value = ''] = words.slice(i, i + 3);
    const off = value === 'unspecified' || value === 'unset';
    const configured = ['clean', 'smudge', 'process'].some((one) => settings.has(`filter.${value}.${one}`));
    const applies = {
      eol: value === 'crlf',
      text: crlf && value !== 'unset',
      filter: !off && configured,
    }[name];
    if (applies ?? !off) found.set(path, name === 'filter' ? `filter ${value}` : name === 'text' ? 'line ends' : name);
  }
  return found;
}
