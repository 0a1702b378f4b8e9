// workspace/seed-files.ts: reads the project files that seed a service.
// Invariant: seed files are the user's: from a commit that the user had or, for a command, from the user's own files; never from
// an agent. No link is followed, and files that are hidden from sandboxes are hidden from services.
import { realpathSync } from 'node:fs';
import { AgsError } from '../protocol/errors.ts';
import { errorCode } from '../lib/error-code.ts';
import { openDirectory, type Directory } from '../lib/descend.ts';
import { baseFiles, readBaseFile } from '../git/base-files.ts';
import type { PlannedService } from '../run/planned-services.ts';
import type { RunPlan } from '../run/run-plan.ts';
import type { HostContext } from '../run/host-context.ts';

/** A commit, or the project's current files. */
export type SeedSource = { readonly commit: string } | 'live';

export interface Seed {
  readonly path: string;
  readonly content: Buffer;
}

const MOST_BYTES = 256 * 2 ** 20;

export async function readSeeds(
  context: HostContext,
  plan: RunPlan,
  one: PlannedService,
  source: SeedSource,
): Promise<readonly Seed[]> {
  const { seed: paths } = one.service;
  if (paths.length === 0) return [];
  const missing = (path: string, why: string): AgsError =>
    new AgsError('service.failed', `The service ${one.service.name} cannot be seeded with ${path}: ${why}.`, {
      hint: `Correct "seed" (${one.service.origin}).`,
    });
  if (source === 'live') {
    using root = openDirectory(realpathSync(plan.project.root));
    return paths.map((path) => {
      if (plan.hidden.paths.some((hidden) => path === hidden || path.startsWith(`${hidden}/`)))
        throw missing(path, 'it is hidden from sandboxes; "reveal" in the configuration shows it');
      try {
        return { path, content: readBelow(root, path.split('/'), MOST_BYTES) };
      } catch (error) {
        throw missing(path, WHY[errorCode(error) ?? ''] ?? (error as Error).message);
      }
    });
  }
  const found = await baseFiles({ project: plan.project.root, home: context.home, commit: source.commit, paths });
  return Promise.all(
    paths.map(async (path) => {
      const file = found.get(path);
      if (file === undefined) throw missing(path, `commit ${source.commit.slice(0, 7)} does not have it`);
      if (file.bytes > MOST_BYTES) throw missing(path, WHY['EFBIG'] ?? '');
      const content = await readBaseFile({ project: plan.project.root, home: context.home, oid: file.oid });
      if (content === null) throw missing(path, 'the repository does not have its content');
      return { path, content };
    }),
  );
}

const WHY: Readonly<Record<string, string>> = {
  ENOENT: 'it does not exist',
  ENOTDIR: 'it does not exist',
  ELOOP: 'it is a link, or lies behind one',
  EINVAL: 'it is not a file',
  EFBIG: 'it is larger than 256 MB; use a script that creates the data',
};

/** Follows no link. */
export function readBelow(directory: Directory, [name = '', ...rest]: readonly string[], mostBytes: number): Buffer {
  if (rest.length === 0) return directory.readFile(name, mostBytes);
  using child = directory.child(name);
  return readBelow(child, rest, mostBytes);
}
