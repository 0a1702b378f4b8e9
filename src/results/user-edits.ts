// results/user-edits.ts: finds the files that both the sandbox and the user changed.
import { lstatSync } from 'node:fs';
import { dirname } from 'node:path';
import { baseFiles, type BaseFile } from '../git/base-files.ts';
import type { RawChange, TreeEntry } from '../git/staging/staging.ts';
import type { HostState } from '../review/apply.ts';
import type { StoredTask } from '../store/tasks.ts';
import type { HostContext } from '../run/host-context.ts';

export interface Touched {
  /** Paths that changed on the host after the sandbox started. */
  readonly paths: ReadonlySet<string>;
  readonly base: ReadonlyMap<string, BaseFile>;
}

export const UNTOUCHED: Touched = { paths: new Set(), base: new Map() };

// A replaced, edited or chmod-ed file has a newer change time; only setting the clock back avoids that.
export async function findTouched(
  context: HostContext,
  task: StoredTask,
  raw: readonly RawChange[],
  host: ReadonlyMap<string, HostState | null>,
  before: ReadonlyMap<string, TreeEntry>,
  agentBase?: string,
): Promise<Touched> {
  // An agent never saw the user's uncommitted work, so every difference from the base is the user's.
  if (agentBase !== undefined) {
    const names = raw.flatMap((one) => (one.from === null ? [one.path] : [one.path, one.from]));
    const base = await baseFiles({
      project: task.task.project,
      home: context.home,
      commit: agentBase,
      paths: names,
    });
    const differs = (path: string): boolean => {
      const file = host.get(path);
      if (file != null && file.type === 'directory') return false;
      return before.get(path)?.oid !== base.get(path)?.oid || (file != null && !before.has(path));
    };
    return { paths: new Set(names.filter(differs)), base };
  }
  const startNs = BigInt(Math.floor(task.run.startedAtMs)) * 1_000_000n;
  const names = raw.flatMap((one) => (one.from === null ? [one.path] : [one.path, one.from]));
  // A directory is newer for every file made or deleted in it; it gives way to a file only when it is empty.
  const newer = names.filter((path) => {
    const file = host.get(path);
    return file != null && file.type !== 'directory' && BigInt(file.ctimeNs) >= startNs;
  });
  // The change time of its directory shows whether the file was deleted after the start or before.
  const gone = raw
    .filter(
      (one) =>
        one.status === 'A' &&
        host.get(one.path) === null &&
        BigInt(directoryState(task.task.project, one.path)?.ctimeNs ?? 0) >= startNs,
    )
    .map((one) => one.path);
  const base = task.task.git
    ? await baseFiles({
        project: task.task.project,
        home: context.home,
        commit: task.run.base,
        paths: [...newer, ...gone],
      })
    : new Map<string, BaseFile>();
  const unchanged = (path: string): boolean => {
    const file = base.get(path);
    return file !== undefined && file.oid === before.get(path)?.oid;
  };
  return {
    paths: new Set([...newer.filter((path) => !unchanged(path)), ...gone.filter((path) => base.has(path))]),
    base,
  };
}

function directoryState(project: string, path: string): { ctimeNs: bigint } | undefined {
  return lstatSync(dirname(`${project}/${path}`), { bigint: true, throwIfNoEntry: false });
}
