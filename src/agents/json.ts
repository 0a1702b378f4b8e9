// agents/json.ts: reads values out of JSON that an agent wrote. Whatever it holds, nothing here throws.

export type Json = Readonly<Record<string, unknown>>;

/** null: the line is no JSON object. */
export function parseObject(line: string): Json | null {
  if (!line.startsWith('{')) return null;
  try {
    const value: unknown = JSON.parse(line);
    return isShallow(value, MAX_DEPTH) ? asObject(value) : null;
  } catch {
    return null;
  }
}

// Whoever walks through it later does so one call within the other. No agent nests its words nearly as deep.
const MAX_DEPTH = 100;

function isShallow(value: unknown, depth: number): boolean {
  if (typeof value !== 'object' || value === null) return true;
  return depth > 0 && Object.values(value).every((inner) => isShallow(inner, depth - 1));
}

export function asObject(value: unknown): Json | null {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Json) : null;
}

/** An object in any case: a missing one is empty. */
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

/** What is kept of the output of a tool: its beginning. */
export function cut(text: string): string {
  return text.length <= MOST_OUTPUT ? text : `${text.slice(0, MOST_OUTPUT)}\n[${text.length - MOST_OUTPUT} more]`;
}

/** The input of a tool that is not known. */
export function rawInput(input: unknown): string {
  return cut(JSON.stringify(input) ?? '');
}
