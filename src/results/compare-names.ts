// results/compare-names.ts: compares the tree that came out of a sandbox with the requested files.
// Invariant: a compromised git in the sandbox cannot deliver files, kinds or sizes that the host did not see itself.
import { AgsError } from '../protocol/errors.ts';
import type { Refusal } from '../protocol/changes.ts';
import { listTree } from '../git/staging/staging.ts';
import type { UpperListing } from '../review/upper.ts';

/** Throws unless the tree holds only requested files. Returns the names that git leaves out, for example a link called .gitmodules. */
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
    throw new AgsError('capture.refused', 'The sandbox returned other files than requested.', {
      hint: 'Nothing was taken. The files are still in the task.',
    });
  return missing.map(({ path }) => ({ path, reason: 'git does not take a file of this name: never taken' }));
}
