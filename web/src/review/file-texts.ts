// web/src/review/file-texts.ts: loads the diffs of a review: files in view first, then the others in order, up to a limit.
// Kept outside React, which is notified at most a few times a second.
import type { ApiChanges, ApiFile } from '../../../src/protocol/api/review.ts';
import { api } from '../api/client.ts';
import { readDiff } from '../diff/source.ts';
import type { DiffText } from '../diff/source.ts';
import { canRun } from './choice.ts';

/** Only `whole` shows exactly what a merge would contain, so hunks can be chosen only there. */
export type DiffScope = 'whole' | 'no-space' | 'since';

export type FileText =
  | { readonly state: 'ready'; readonly scope: DiffScope; readonly diff: DiffText | null; readonly why: string | null }
  | { readonly state: 'failed'; readonly error: unknown };

export interface FileTexts {
  get(n: number): FileText | undefined;
  /** Loads the file next. */
  want(n: number): void;
  /** Loads all files, without a limit. */
  wantAll(): void;
  retry(n: number): void;
  /** Shows only changes since this blob was viewed; null shows the full diff. */
  setSince(n: number, viewed: string | null): void;
  sinceOf(n: number): string | null;
  subscribe(changed: () => void): () => void;
  version(): number;
  end(): void;
}

const AT_ONCE = 4;
const TELL_EVERY_MS = 200;
/** Limits for loading ahead. Other files load when they come into view. */
const MOST_LINES = 12_000;
const MOST_FILES = 20;
/** How many files after the current one are loaded with it. */
const AHEAD = 3;

export function createFileTexts(
  task: string,
  { id, files: all }: ApiChanges,
  files: readonly ApiFile[],
  shown: (file: ApiFile) => boolean,
  hideSpace: boolean,
): FileTexts {
  const texts = new Map<number, FileText>();
  const since = new Map<number, string>();
  const begun = new Set<number>();
  const listeners = new Set<() => void>();
  const urgent: number[] = [];
  let rest = withinBounds(files.filter(shown));
  let ended = false;
  let running = 0;
  let version = 0;
  let timer: ReturnType<typeof setTimeout> | undefined;

  const tell = (): void => {
    timer = undefined;
    version += 1;
    for (const listener of listeners) listener();
  };
  const next = (): number | undefined => {
    for (let n = urgent.pop() ?? rest.shift(); n !== undefined; n = urgent.pop() ?? rest.shift())
      if (!begun.has(n)) return n;
    return undefined;
  };
  const read = async (n: number): Promise<void> => {
    const file = all.find((one) => one.n === n);
    if (file === undefined) return;
    try {
      const viewed = since.get(n);
      // Whitespace can change what a file runs, so files that can run code are always shown in full.
      const hide = hideSpace && !canRun(file);
      const given = await api.file(task, id, n, {
        ...(viewed === undefined ? {} : { since: viewed }),
        ...(hide ? { space: 'hide' } : {}),
      });
      if (ended || since.get(n) !== viewed) return;
      const scope: DiffScope = viewed !== undefined ? 'since' : hide ? 'no-space' : 'whole';
      const lines = given.patch.includes('\n@@ ');
      texts.set(n, {
        state: 'ready',
        scope,
        diff: lines ? readDiff(`${id}:${n}:${hide}:${viewed ?? ''}`, file.path, given, scope === 'whole') : null,
        why: given.why,
      });
    } catch (error) {
      if (ended) return;
      begun.delete(n);
      texts.set(n, { state: 'failed', error });
    }
    timer ??= setTimeout(tell, texts.size < 8 ? 0 : TELL_EVERY_MS);
  };
  const work = (): void => {
    while (running < AT_ONCE) {
      const n = next();
      if (n === undefined) return;
      begun.add(n);
      running += 1;
      void read(n).finally(() => {
        running -= 1;
        if (!ended) work();
      });
    }
  };
  const want = (n: number): void => {
    const at = files.findIndex((file) => file.n === n);
    const next = files.slice(at + 1, at + 1 + AHEAD).filter((file) => shown(file));
    for (const one of [...next.map((file) => file.n).toReversed(), n]) if (!begun.has(one)) urgent.push(one);
    work();
  };
  return {
    get: (n) => texts.get(n),
    want,
    wantAll() {
      rest = files.map(({ n }) => n);
      work();
    },
    retry(n) {
      texts.delete(n);
      want(n);
      tell();
    },
    setSince(n, viewed) {
      if (viewed === null) since.delete(n);
      else since.set(n, viewed);
      texts.delete(n);
      begun.delete(n);
      want(n);
      tell();
    },
    sinceOf: (n) => since.get(n) ?? null,
    subscribe(changed) {
      listeners.add(changed);
      work();
      return () => listeners.delete(changed);
    },
    version: () => version,
    end() {
      clearTimeout(timer);
      ended = true;
    },
  };
}

function withinBounds(files: readonly ApiFile[]): number[] {
  let lines = 0;
  return files
    .slice(0, MOST_FILES)
    .filter(({ added, removed }) => {
      lines += (added ?? 0) + (removed ?? 0);
      return lines <= MOST_LINES;
    })
    .map(({ n }) => n);
}
