// web/src/review/review-state.ts: everything that a review remembers about one set of changes, for all parts of the screen.
import { createContext, use, useCallback, useEffect, useMemo, useRef, useState } from 'react';
import type { RefObject } from 'react';
import type { ApiChanges, ApiFile } from '../../../src/protocol/api/review.ts';
import type { DiffHandle, LineRange } from '../diff/diff-view.tsx';
import { linesOf } from '../diff/source.ts';
import type { DiffLine, DiffText } from '../diff/source.ts';
import { useKept } from '../look/preferences.ts';
import { say } from '../ui/toasts.tsx';
import { canRun, firstChoice, printOf, withFiles, withHunk } from './choice.ts';
import type { Choice } from './choice.ts';
import { useComments } from './comments.ts';
import type { Comments } from './comments.ts';
import { createFileTexts } from './file-texts.ts';
import type { FileTexts } from './file-texts.ts';
import { inOrder } from './tree.ts';

export interface Review {
  readonly task: string;
  readonly changes: ApiChanges;
  /** In the order of the screen. */
  readonly files: readonly ApiFile[];
  readonly byId: ReadonlyMap<string, ApiFile>;
  readonly texts: FileTexts;
  readonly comments: Comments;
  readonly diff: RefObject<DiffHandle | null>;

  readonly choice: Choice;
  take(files: readonly ApiFile[], take: boolean): void;
  toggleHunk(file: ApiFile, hunk: number): void;

  isOpen(file: ApiFile): boolean;
  setOpen(file: ApiFile, open: boolean): void;
  /** Its difference has been open: whoever can run code may be chosen now. */
  wasSeen(file: ApiFile): boolean;
  isViewed(file: ApiFile): boolean;
  setViewed(file: ApiFile, viewed: boolean): void;
  /** It was viewed, and has changed again: the id of the content that was viewed. */
  viewedBefore(file: ApiFile): string | null;
  /** Changes in white space alone are not shown. What is taken is the same. */
  readonly hideSpace: boolean;

  readonly current: ApiFile | null;
  readonly cursor: LineRange | null;
  setCursor(cursor: LineRange | null): void;
  /** The user has scrolled to it. */
  settle(file: ApiFile): void;
  /** Goes there and opens it. */
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

export function useReviewState(task: string, changes: ApiChanges, hideSpace: boolean): Review {
  const files = useMemo(() => inOrder(changes.files), [changes]);
  const byId = useMemo(() => new Map(files.map((file) => [idOf(file), file])), [files]);
  const [choice, setChoice] = useState(() => firstChoice(files));
  const [opened, setOpened] = useState<ReadonlyMap<number, boolean>>(new Map());
  const [seen, setSeen] = useKept<Readonly<Record<string, string>>>(`seen.${task}`, NOTHING);
  const [viewed, setViewed] = useKept<Readonly<Record<string, string>>>(`viewed.${task}`, NOTHING);
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

  const wasSeen = useCallback((file: ApiFile) => seen[file.path] === printOf(file), [seen]);
  const isOpen = (file: ApiFile): boolean =>
    opened.get(file.n) ?? (file.folded === null && (!canRun(file) || wasSeen(file)));
  const setOpen = (file: ApiFile, open: boolean): void => {
    setOpened((before) => new Map(before).set(file.n, open));
    if (!open) return;
    texts.want(file.n);
    if (canRun(file) && !wasSeen(file)) setSeen((now) => ({ ...now, [file.path]: printOf(file) }));
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
    take(some, take) {
      const unseen = take ? some.filter((file) => canRun(file) && !wasSeen(file)) : [];
      const rest = some.filter((file) => !unseen.includes(file));
      setChoice((before) => withFiles(before, rest, take));
      if (unseen.length > 0)
        say(unseen.length === 1 ? 'Look at it first' : `Look at ${unseen.length} files first`, {
          about: 'What can run code is taken only after its difference was opened.',
        });
    },
    toggleHunk(file, hunk) {
      const text = texts.get(file.n);
      const of = text?.state === 'ready' && text.way === 'whole' ? (text.diff?.hunks.length ?? 0) : 0;
      if (text?.state === 'ready' && text.way !== 'whole')
        say('Parts are chosen where all of the change is shown', {
          about: text.way === 'since' ? 'Show all of this file first.' : 'Show changes in white space first: w',
        });
      if (of > 0) setChoice((before) => withHunk(before, file.n, hunk, of));
    },
    isOpen,
    setOpen,
    wasSeen,
    isViewed: (file) => viewed[file.path] === printOf(file),
    hideSpace,
    viewedBefore(file) {
      const print = viewed[file.path];
      const [blob = ''] = print?.split(' ') ?? [];
      return print === undefined || print === printOf(file) || blob === 'gone' || file.oid.after === null ? null : blob;
    },
    setViewed(file, next) {
      setViewed(({ [file.path]: _old, ...rest }) => (next ? { ...rest, [file.path]: printOf(file) } : rest));
      setOpened((before) => new Map(before).set(file.n, !next));
    },
    current,
    cursor,
    setCursor(range) {
      setCursor(range);
      const file = range === null ? undefined : byId.get(range.file);
      if (file !== undefined) setCurrent(file);
    },
    settle(file) {
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
