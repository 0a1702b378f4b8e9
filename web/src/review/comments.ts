// web/src/review/comments.ts: line comments, stored in the browser until sent, and the message to the agent.
import { useMemo } from 'react';
import type { ApiFile } from '../../../src/protocol/api/review.ts';
import type { DiffLine, Side } from '../diff/source.ts';
import { useStored } from '../look/preferences.ts';
import { fingerprintOf } from './choice.ts';

export interface Comment {
  readonly id: string;
  readonly path: string;
  /** Fingerprint of the commented content. */
  readonly print: string;
  readonly side: Side;
  readonly from: number;
  readonly to: number;
  readonly snippet: readonly string[];
  readonly text: string;
  readonly sent: boolean;
}

const LONGEST_SNIPPET = 6;
const LONGEST_SNIPPET_LINE = 160;

export interface Comments {
  readonly all: readonly Comment[];
  readonly drafts: readonly Comment[];
  put(comment: Comment): void;
  drop(id: string): void;
  markSent(): void;
  dropSent(): void;
}

export function useComments(task: string): Comments {
  const [all, change] = useStored<readonly Comment[]>(`comments.${task}`, NONE);
  return useMemo(
    () => ({
      all,
      drafts: all.filter(({ sent }) => !sent),
      put: (comment) =>
        change((now) =>
          now.some(({ id }) => id === comment.id)
            ? now.map((one) => (one.id === comment.id ? comment : one))
            : [...now, comment],
        ),
      drop: (id) => change((now) => now.filter((one) => one.id !== id)),
      markSent: () => change((now) => now.map((one) => ({ ...one, sent: true }))),
      dropSent: () => change((now) => now.filter(({ sent }) => !sent)),
    }),
    [all, change],
  );
}

const NONE: readonly Comment[] = [];

/** The file has changed or is gone since the comment was written. */
export function isOutdated(comment: Comment, files: readonly ApiFile[]): boolean {
  const file = files.find(({ path }) => path === comment.path);
  return file === undefined || fingerprintOf(file) !== comment.print;
}

export function snippetOf(lines: readonly DiffLine[], side: Side, from: number, to: number): string[] {
  const found = lines
    .filter((one) => one.line >= from && one.line <= to && (one.side === side || one.kind === 'same'))
    .map(({ text }) => (text.length > LONGEST_SNIPPET_LINE ? `${text.slice(0, LONGEST_SNIPPET_LINE)}…` : text));
  return found.length > LONGEST_SNIPPET ? [...found.slice(0, LONGEST_SNIPPET), '…'] : found;
}

/** The exact text that the agent receives. */
export function messageOf(comments: readonly Comment[]): string {
  const parts = comments.map(({ path, side, from, to, snippet, text }, i) => {
    const lines = from === to ? `line ${from}` : `lines ${from}–${to}`;
    const where = `${i + 1}. ${path}, ${lines}${side === 'old' ? ' of the old version' : ''}`;
    return [where, ...snippet.map((line) => `   > ${line}`), ...text.split('\n').map((line) => `   ${line}`)].join(
      '\n',
    );
  });
  const head =
    comments.length === 1
      ? 'I looked at your changes and have a comment:'
      : 'I looked at your changes and have these comments:';
  return `${head}\n\n${parts.join('\n\n')}\n`;
}
