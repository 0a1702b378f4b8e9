// results/compare-names.ts: compare what came out of a sandbox with what was asked for.
// Invariant: whoever has taken over the git in there cannot give files, kinds or sizes that the host did not see itself.
import { AgsError } from '../protocol/errors.ts';
import type { Refusal } from '../protocol/changes.ts';
import { listTree } from '../git/staging/staging.ts';
import type { UpperListing } from '../review/upper.ts';

/** The tree must hold what was asked for and nothing else. A name that git leaves out (a link called .gitmodules) is reported. */
export async function leftOut(staging: string, tree: string, wanted: UpperListing['entries']): Promise<Refusal[]> {
  const found = new Map((await listTree(staging, tree)).map((entry) => [entry.path, entry]));
  const missing = wanted.filter((entry) => !found.has(entry.path));
  const isWanted = ({ path, type, bytes }: UpperListing['entries'][number]): boolean => {
    const taken = found.get(path);
    return (
      taken !== undefined &&
      taken.bytes === bytes &&
      (type === 'symlink' ? taken.mode === '120000' : /^100(644|755)$/.test(taken.mode))
    );
  };
  if (wanted.filter(isWanted).length !== found.size)
    throw new AgsError('capture.refused', 'What came out of the sandbox is not what was asked for.', {
      hint: 'Nothing was taken. The files are still in the task.',
    });
  return missing.map(({ path }) => ({ path, reason: 'git does not take a file of this name: never taken' }));
}
