// web/src/task/item.ts: the item types of a timeline, and its filters.
import type { Action } from '../../../src/protocol/agent-event.ts';

export interface Tool {
  readonly id: string;
  readonly tool: string;
  readonly action: Action;
  readonly atMs: number;
  /** null while the tool runs. */
  readonly end: {
    readonly outcome: 'done' | 'failed' | 'refused';
    readonly exitCode: number | null;
    readonly output: string;
    readonly tookMs: number;
  } | null;
}

interface Placed {
  /** Derived from the sequence number of the first event, so it never changes. */
  readonly key: number;
  readonly atMs: number;
  readonly turn: number;
}

export type Item = Placed &
  (
    | { readonly kind: 'goal'; readonly text: string }
    | { readonly kind: 'message'; readonly text: string }
    | {
        readonly kind: 'prepare';
        readonly steps: readonly { text: string; atMs: number }[];
        readonly printed: readonly string[];
        readonly endMs: number | null;
        readonly failed: boolean;
      }
    | { readonly kind: 'started'; readonly who: string; readonly sandbox: string }
    | { readonly kind: 'said'; readonly text: string }
    | { readonly kind: 'thought'; readonly text: string }
    | { readonly kind: 'explore'; readonly tools: readonly Tool[] }
    | { readonly kind: 'command'; readonly tool: Tool }
    | { readonly kind: 'edit'; readonly tool: Tool }
    | { readonly kind: 'other'; readonly tool: Tool }
    | {
        readonly kind: 'question';
        readonly question: string;
        readonly choices: readonly string[];
        readonly open: boolean;
      }
    | {
        readonly kind: 'network';
        readonly host: string;
        readonly port: number;
        readonly tries: number;
        readonly asked: boolean;
        readonly reason: string;
        readonly program: string | null;
      }
    | {
        readonly kind: 'hook';
        readonly hook: string;
        readonly point: string;
        readonly tool: string;
        readonly reason: string;
        readonly broken: boolean;
      }
    | { readonly kind: 'note'; readonly tone: 'plain' | 'warn' | 'bad'; readonly text: string }
    | { readonly kind: 'printed'; readonly lines: readonly string[] }
    | {
        readonly kind: 'captured';
        readonly files: number;
        readonly added: number;
        readonly removed: number;
        readonly branch: string;
      }
    | { readonly kind: 'ended'; readonly state: string; readonly reason: string }
  );

export type ItemOf<Kind extends Item['kind']> = Extract<Item, { kind: Kind }>;

export const FILTERS = ['all', 'edits', 'commands', 'errors', 'network', 'questions'] as const;
export type Filter = (typeof FILTERS)[number];

export function passes(filter: Filter, item: Item): boolean {
  switch (filter) {
    case 'all':
      return true;
    case 'edits':
      return item.kind === 'edit' || item.kind === 'captured';
    case 'commands':
      return item.kind === 'command';
    case 'errors':
      return (
        item.kind === 'hook' ||
        (item.kind === 'note' && item.tone === 'bad') ||
        (item.kind === 'prepare' && item.failed) ||
        (item.kind === 'ended' && item.state === 'failed') ||
        ('tool' in item && typeof item.tool === 'object' && item.tool.end !== null && item.tool.end.outcome !== 'done')
      );
    case 'network':
      return item.kind === 'network';
    case 'questions':
      return item.kind === 'question' || item.kind === 'message' || item.kind === 'goal';
  }
}
