// git/base-files.ts: what some files were in the commit a run started from, read from the user's own repository.
import { userGit } from './host-git.ts';

export async function baseContents(input: {
  project: string;
  home: string;
  commit: string | null;
  paths: readonly string[];
}): Promise<Map<string, Buffer>> {
  const found = new Map<string, Buffer>();
  if (input.commit === null || input.paths.length === 0) return found;
  const at = { cwd: input.project, home: input.home };
  for (let i = 0; i < input.paths.length; i += 500) {
    const rows = (
      await userGit(
        ['--literal-pathspecs', 'ls-tree', '-z', '--full-tree', input.commit, '--', ...input.paths.slice(i, i + 500)],
        at,
      )
    ).stdout
      .toString('utf8')
      .split('\0');
    for (const row of rows.filter((r) => / blob /.test(r))) {
      const tab = row.indexOf('\t');
      const blob = await userGit(['cat-file', 'blob', row.slice(0, tab).split(' ')[2] ?? ''], at);
      if (blob.exitCode === 0) found.set(row.slice(tab + 1), blob.stdout);
    }
  }
  return found;
}
