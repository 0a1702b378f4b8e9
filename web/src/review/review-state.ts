// web/src/review/review-state.ts: the state of a review, shared by all parts of the screen.
// Invariant: a file that can run code is included only after its diff was opened.
import { createContext, use, useCallback, useEffect, useMemo, useRef, useState } from 'react';
import type { RefObject } from 'react';
import type { ApiChanges, ApiFile } from '../../../src/protocol/api/review.ts';
import type { DiffHandle, LineRange } from '../diff/diff-view.tsx';
import { linesOf } from '../diff/source.ts';
import type { DiffLine, DiffText } from '../diff/source.ts';
import { readPreference, useStored, writePreference } from '../look/preferences.ts';
import { showToast } from '../ui/toasts.tsx';
import { canRun, fingerprintOf, keptChoice, restoredChoice, withFiles, withHunk } from './choice.ts';
import type { Choice, KeptChoice } from './choice.ts';
import { useComments } from './comments.ts';
import type { Comments } from './comments.ts';
import { createFileTexts } from './file-texts.ts';
import type { FileTexts } from './file-texts.ts';
import { inOrder } from './tree.ts';

export interface Review {
  readonly task: string;
  readonly changes: ApiChanges;
  /** In display order. */
  readonly files: readonly ApiFile[];
  readonly byId: ReadonlyMap<string, ApiFile>;
  readonly texts: FileTexts;
  readonly comments: Comments;
  readonly diff: RefObject<DiffHandle | null>;

  readonly choice: Choice;
  include(files: readonly ApiFile[], included: boolean): void;
  toggleHunk(file: ApiFile, hunk: number): void;

  isOpen(file: ApiFile): boolean;
  setOpen(file: ApiFile, open: boolean): void;
  /** The target branch has this change already. */
  isMerged(file: ApiFile): boolean;
  /** The diff of exactly this content was open. Files that can run code need this before they can be included. */
  wasSeen(file: ApiFile): boolean;
  isViewed(file: ApiFile): boolean;
  setViewed(file: ApiFile, viewed: boolean): void;
  /** The blob that was marked as viewed, if the file has changed since. */
  viewedBefore(file: ApiFile): string | null;
  /** Hides whitespace changes. A merge still includes them. */
  readonly hideSpace: boolean;

  readonly current: ApiFile | null;
  readonly cursor: LineRange | null;
  setCursor(cursor: LineRange | null): void;
  /** The user scrolled to the file. */
  scrolledTo(file: ApiFile): void;
  /** Scrolls to the file and expands it. */
  goTo(file: ApiFile): void;
  readonly writing: LineRange | null;
  write(range: LineRange | null): void;
}

export const idOf = (file: ApiFile): string => String(file.n);

const Context = createContext<Review | null>(null);
export const ReviewProvider = Context.Provider;

export function useReview(): Review {
  const review = use(Context);
  if (review === null) throw new Error('used outside of a review');
  return review;
}

const lines = new WeakMap<DiffText, DiffLine[]>();
export function linesOfText(text: DiffText): DiffLine[] {
  let found = lines.get(text);
  if (found === undefined) lines.set(text, (found = linesOf(text)));
  return found;
}

const AFTER_JUMP_MS = 400;

/** `merged`: numbers of the files that the branch has by now. */
export function useReviewState(
  task: string,
  changes: ApiChanges,
  merged: ReadonlySet<number>,
  hideSpace: boolean,
): Review {
  const files = useMemo(() => inOrder(changes.files), [changes]);
  const byId = useMemo(() => new Map(files.map((file) => [idOf(file), file])), [files]);
  const [opened, setOpened] = useState<ReadonlyMap<number, boolean>>(new Map());
  const [seen, setSeen] = useStored<Readonly<Record<string, string>>>(`seen.${task}`, NOTHING);
  const mayRun = (file: ApiFile): boolean => !canRun(file) || seen[file.path] === fingerprintOf(file);
  const [choice, setChoice] = useState(() =>
    restoredChoice(files, readPreference(`choice.${task}`, NO_CHOICE), mayRun),
  );
  const [mergedBefore, setMergedBefore] = useState(
    () => new Set(files.filter((file) => file.merged).map(({ n }) => n)),
  );
  if (merged.size !== mergedBefore.size || files.some(({ n }) => merged.has(n) !== mergedBefore.has(n))) {
    // A merge takes its files out of the choice, and its undo brings them back.
    setMergedBefore(new Set(merged));
    const gone = files.filter(({ n }) => merged.has(n) && !mergedBefore.has(n));
    const back = files.filter((file) => !merged.has(file.n) && mergedBefore.has(file.n) && mayRun(file));
    setChoice((before) => withFiles(withFiles(before, gone, false), back, true));
  }
  useEffect(() => {
    const now = files.map((file) => ({ ...file, merged: mergedBefore.has(file.n) }));
    writePreference(`choice.${task}`, keptChoice(now, choice));
  }, [task, files, mergedBefore, choice]);
  const [viewed, setViewed] = useStored<Readonly<Record<string, string>>>(`viewed.${task}`, NOTHING);
  const [current, setCurrent] = useState<ApiFile | null>(files[0] ?? null);
  const [cursor, setCursor] = useState<LineRange | null>(null);
  const [writing, write] = useState<LineRange | null>(null);
  const comments = useComments(task);
  const diff = useRef<DiffHandle>(null);
  const jumpedAt = useRef(0);

  const texts = useMemo(
    () => createFileTexts(task, changes, files, (file) => file.folded === null && !canRun(file), hideSpace),
    [task, changes, files, hideSpace],
  );
  useEffect(() => () => texts.end(), [texts]);
  // With or without whitespace changes, the files above have other heights.
  const place = useRef(hideSpace);
  useEffect(() => {
    if (place.current === hideSpace) return;
    place.current = hideSpace;
    if (current !== null) diff.current?.toFile(idOf(current));
  }, [hideSpace, current]);

  const wasSeen = useCallback((file: ApiFile) => seen[file.path] === fingerprintOf(file), [seen]);
  const isOpen = (file: ApiFile): boolean =>
    opened.get(file.n) ?? (file.folded === null && (!canRun(file) || wasSeen(file)));
  const setOpen = (file: ApiFile, open: boolean): void => {
    setOpened((before) => new Map(before).set(file.n, open));
    if (!open) return;
    texts.want(file.n);
    if (canRun(file) && !wasSeen(file)) setSeen((now) => ({ ...now, [file.path]: fingerprintOf(file) }));
  };
  return {
    task,
    changes,
    files,
    byId,
    texts,
    comments,
    diff,
    choice,
    include(some, included) {
      const unseen = included ? some.filter((file) => canRun(file) && !wasSeen(file)) : [];
      const rest = some.filter((file) => !unseen.includes(file));
      setChoice((before) => withFiles(before, rest, included));
      if (unseen.length > 0)
        showToast(unseen.length === 1 ? 'Open its diff first' : `Open ${unseen.length} diffs first`, {
          about: 'Files that can run code can be included after you open their diff.',
        });
    },
    toggleHunk(file, hunk) {
      const text = texts.get(file.n);
      const of = text?.state === 'ready' && text.scope === 'whole' ? (text.diff?.hunks.length ?? 0) : 0;
      if (text?.state === 'ready' && text.scope !== 'whole')
        showToast('Hunks can be chosen only in the full diff', {
          about: text.scope === 'since' ? 'Select “Show full diff” first.' : 'Press w to show whitespace changes.',
        });
      if (of > 0) setChoice((before) => withHunk(before, file.n, hunk, of));
    },
    isOpen,
    setOpen,
    isMerged: ({ n }) => mergedBefore.has(n),
    wasSeen,
    isViewed: (file) => viewed[file.path] === fingerprintOf(file),
    hideSpace,
    viewedBefore(file) {
      const print = viewed[file.path];
      const [blob = ''] = print?.split(' ') ?? [];
      return print === undefined || print === fingerprintOf(file) || blob === 'gone' || file.oid.after === null
        ? null
        : blob;
    },
    setViewed(file, next) {
      setViewed(({ [file.path]: _old, ...rest }) => (next ? { ...rest, [file.path]: fingerprintOf(file) } : rest));
      setOpened((before) => new Map(before).set(file.n, !next));
    },
    current,
    cursor,
    setCursor(range) {
      setCursor(range);
      const file = range === null ? undefined : byId.get(range.file);
      if (file !== undefined) setCurrent(file);
    },
    scrolledTo(file) {
      if (performance.now() - jumpedAt.current > AFTER_JUMP_MS) setCurrent(file);
    },
    goTo(file) {
      jumpedAt.current = performance.now();
      setCurrent(file);
      setCursor(null);
      setOpen(file, true);
      requestAnimationFrame(() => diff.current?.toFile(idOf(file)));
    },
    writing,
    write,
  };
}

const NOTHING = {};
const NO_CHOICE: KeptChoice = {};
