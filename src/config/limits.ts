// config/limits.ts: the limits by their names in the file, and how each is parsed.
import type { Limits } from '../protocol/spec.ts';
import { CPUS, WORDS } from '../protocol/config/words.ts';
import { formatDuration, formatSize, parseCount, parseDuration, parseShare, parseSize } from '../lib/units.ts';
import type { LimitName } from './defaults.ts';

export interface LimitKind {
  readonly field: keyof Limits;
  /** null: no limit; undefined: not valid. */
  readonly parse: (text: string, memoryTotalBytes: number) => number | null | undefined;
  readonly words: string;
  /** Below this no program would run. */
  readonly min: number;
  readonly format: (value: number | null) => string;
}

const count = (field: keyof Limits, min: number): LimitKind => ({
  field,
  parse: parseCount,
  words: 'a whole number',
  min,
  format: String,
});
const bytes = (field: keyof Limits, min: number): LimitKind => ({
  field,
  parse: parseSize,
  words: WORDS.size,
  min,
  format: (n) => formatSize(n ?? 0),
});
const seconds = (field: keyof Limits): LimitKind => ({
  field,
  parse: (text) => (text === 'none' ? null : parseDuration(text)),
  words: WORDS.duration,
  min: 1,
  format: (n) => (n === null ? 'none' : formatDuration(n)),
});

const MB = 2 ** 20;

export const LIMIT_KINDS: Readonly<Record<LimitName, LimitKind>> = {
  processes: count('processes', 16),
  memory: { ...bytes('memoryBytes', 64 * MB), parse: parseShare, words: WORDS.share },
  openFiles: count('openFiles', 64),
  fileSize: bytes('fileBytes', MB),
  disk: bytes('diskBytes', MB),
  tmp: bytes('tmpBytes', MB),
  cpu: seconds('cpuSeconds'),
  time: seconds('wallSeconds'),
  cpus: {
    field: 'cpus',
    parse: (text) => (text === 'none' ? null : CPUS.test(text) ? Number(text) : undefined),
    words: WORDS.cpus,
    min: 0.1,
    format: (n) => (n === null ? 'none' : String(n)),
  },
};

export const LIMIT_NAMES = Object.keys(LIMIT_KINDS) as readonly LimitName[];

export function isLimitName(name: string): name is LimitName {
  return Object.hasOwn(LIMIT_KINDS, name);
}

/** Whether `value` allows more than `base`. */
export function isAbove(value: number | null, base: number | null): boolean {
  return base !== null && (value === null || value > base);
}
