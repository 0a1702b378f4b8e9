// agents/json.ts: reads values from JSON that an agent wrote. Nothing here throws, whatever it holds.

export type Json = Readonly<Record<string, unknown>>;

/** null: the line is not a JSON object. */
export function parseObject(line: string): Json | null {
  if (!line.startsWith('{')) return null;
  try {
    const value: unknown = JSON.parse(line);
    return isShallow(value, MAX_DEPTH) ? asObject(value) : null;
  } catch {
    return null;
  }
}

// Later readers walk it recursively. No agent nests its output nearly as deep.
const MAX_DEPTH = 100;

function isShallow(value: unknown, depth: number): boolean {
  if (typeof value !== 'object' || value === null) return true;
  return depth > 0 && Object.values(value).every((inner) => isShallow(inner, depth - 1));
}

export function asObject(value: unknown): Json | null {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Json) : null;
}

/** Always an object: a missing one is empty. */
export function within(value: unknown, key: string): Json {
  return asObject(asObject(value)?.[key]) ?? {};
}

export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** The first of these keys that holds a text. */
export function textOf(value: unknown, ...keys: readonly string[]): string | null {
  const object = asObject(value);
  for (const key of keys) {
    const found = object?.[key];
    if (typeof found === 'string') return found;
  }
  return null;
}

export function numberOf(value: unknown, key: string): number | null {
  const found = asObject(value)?.[key];
  return typeof found === 'number' && Number.isFinite(found) ? found : null;
}

const MOST_OUTPUT = 64 * 1024;

/** Keeps the beginning of a tool's output. */
export function cut(text: string): string {
  return text.length <= MOST_OUTPUT ? text : `${text.slice(0, MOST_OUTPUT)}\n[${text.length - MOST_OUTPUT} more]`;
}

/** The input of an unknown tool. */
export function rawInput(input: unknown): string {
  return cut(JSON.stringify(input) ?? '');
}
