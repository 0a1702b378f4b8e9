// config/limits.ts: every limit of a sandbox: its name in the file, and how it is parsed.
// A field of Limits without an entry here, or without a built-in value, is a compile error.
import type { Limits } from '../protocol/spec.ts';
import { CPUS, WORDS } from '../protocol/config/words.ts';
import { formatDuration, formatSize, parseCount, parseDuration, parseShare, parseSize } from '../lib/units.ts';
import type { LimitName } from './defaults.ts';

export interface LimitKind<Value extends number | null = number | null> {
  readonly name: LimitName;
  /** null: no limit; undefined: not valid. */
  readonly parse: (text: string, memoryTotalBytes: number) => Value | undefined;
  readonly words: string;
  /** Below this no program would run. */
  readonly min: number;
  readonly format: (value: number | null) => string;
}

const count = (name: LimitName, min: number): LimitKind<number> => ({
  name,
  parse: parseCount,
  words: 'a whole number',
  min,
  format: String,
});
const bytes = (name: LimitName, min: number): LimitKind<number> => ({
  name,
  parse: parseSize,
  words: WORDS.size,
  min,
  format: (n) => formatSize(n ?? 0),
});
const seconds = (name: LimitName): LimitKind => ({
  name,
  parse: (text) => (text === 'none' ? null : parseDuration(text)),
  words: WORDS.duration,
  min: 1,
  format: (n) => (n === null ? 'none' : formatDuration(n)),
});

const MB = 2 ** 20;

export const LIMIT_KINDS: { readonly [Field in keyof Limits]: LimitKind<Limits[Field]> } = {
  processes: count('processes', 16),
  memoryBytes: { ...bytes('memory', 64 * MB), parse: parseShare, words: WORDS.share },
  openFiles: count('openFiles', 64),
  fileBytes: bytes('fileSize', MB),
  diskBytes: bytes('disk', MB),
  tmpBytes: bytes('tmp', MB),
  cpuSeconds: seconds('cpu'),
  wallSeconds: seconds('time'),
  cpus: {
    name: 'cpus',
    parse: (text) => (text === 'none' ? null : CPUS.test(text) ? Number(text) : undefined),
    words: WORDS.cpus,
    min: 0.1,
    format: (n) => (n === null ? 'none' : String(n)),
  },
};

export const LIMIT_FIELDS = Object.keys(LIMIT_KINDS) as readonly (keyof Limits)[];
export const LIMIT_NAMES = LIMIT_FIELDS.map((field) => LIMIT_KINDS[field].name);

export function isLimitName(name: string): name is LimitName {
  return LIMIT_NAMES.some((known) => known === name);
}

/** Whether `value` allows more than `base`. */
export function isAbove(value: number | null, base: number | null): boolean {
  return base !== null && (value === null || value > base);
}
