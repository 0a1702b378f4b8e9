// git/base-files.ts: reads files of the commit that a run started from, from the user's repository.
import { userGit } from './host-git.ts';

export interface BaseFile {
  readonly oid: string;
  readonly bytes: number;
}

export async function baseFiles(input: {
  project: string;
  home: string;
  commit: string | null;
  paths: readonly string[];
}): Promise<Map<string, BaseFile>> {
  const found = new Map<string, BaseFile>();
  if (input.commit === null) return found;
  const list = ['--literal-pathspecs', 'ls-tree', '-z', '-l', '--full-tree', input.commit, '--'];
  for (let i = 0; i < input.paths.length; i += 500) {
    const listing = await userGit([...list, ...input.paths.slice(i, i + 500)], {
      cwd: input.project,
      home: input.home,
    });
    for (const row of listing.stdout.toString('utf8').split('\0')) {
      const [, oid, size, path] = /^\d+ blob ([0-9a-f]+) +(\d+)\t([\s\S]+)$/.exec(row) ?? [];
      if (oid !== undefined && path !== undefined) found.set(path, { oid, bytes: Number(size) });
    }
  }
  return found;
}

/** Returns null if the repository does not have it. */
export async function readBaseFile(input: { project: string; home: string; oid: string }): Promise<Buffer | null> {
  const blob = await userGit(['cat-file', 'blob', input.oid], { cwd: input.project, home: input.home });
  return blob.exitCode === 0 ? blob.stdout : null;
}
