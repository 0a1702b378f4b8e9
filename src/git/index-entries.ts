// git/index-entries.ts: reads and sets entries of a work tree's index. Reads nothing from the work tree.
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

/** An entry of null is removed. Entries that are not named stay unchanged. */
export async function setEntries(
  { gitDir, path: cwd }: { readonly gitDir: string; readonly path: string },
  entries: readonly { readonly path: string; readonly entry: IndexEntry | null }[],
  hold?: number,
): Promise<void> {
  if (entries.length === 0) return;
  const zero = '0'.repeat(entries.find((one) => one.entry !== null)?.entry?.oid.length ?? 40);
  // Removals come first: a file may replace a directory.
  const ordered = [...entries.filter((one) => one.entry === null), ...entries.filter((one) => one.entry !== null)];
  const lines = ordered.map(({ path, entry }) => `${entry?.mode ?? '0'} ${entry?.oid ?? zero}\t${path}\0`).join('');
  const set = await ownerGit(gitDir, ['update-index', '-z', '--index-info'], {
    input: Buffer.from(lines),
    env: await withoutFilters(gitDir),
    // Git checks files again whose entries are as new as the index, to notice edits of the same moment. It resolves their
    // names from this directory.
    cwd,
    timeoutMs: 60_000,
    hold,
  });
  if (set.exitCode !== 0) throw cannotWrite(gitDir, set.stderr);
}

/** Disables the user's filters, which git would run when it checks a file. Git may later check more files than necessary. */
async function withoutFilters(gitDir: string): Promise<Record<string, string>> {
  const listed = await ownerGit(gitDir, ['config', '--list', '-z', '--name-only', '--includes']);
  const keys = listed.stdout.toString('utf8').split('\0');
  const names = new Set(keys.flatMap((key) => /^filter\.([\s\S]+)\.[^.]+$/.exec(key)?.[1] ?? []));
  const off = [...names].flatMap((name) => [
    ...['clean', 'smudge', 'process'].map((one) => [`filter.${name}.${one}`, ''] as const),
    [`filter.${name}.required`, 'false'] as const,
  ]);
  return Object.fromEntries([
    ['GIT_CONFIG_COUNT', String(off.length)],
    ...off.flatMap(([key, value], i) => [
      [`GIT_CONFIG_KEY_${i}`, key],
      [`GIT_CONFIG_VALUE_${i}`, value],
    ]),
  ]) as Record<string, string>;
}

/** Finds the files that git converts between the work tree and its store, and the rule that does it. */
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
