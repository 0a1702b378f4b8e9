// gateway/values.ts: reads a value that nobody inside may see from where the user keeps it.
// Invariant: the value is in no message, and one that could break out of a header is refused.
import type { ValueSource } from '../protocol/network.ts';

export interface ValueWorld {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly home: string;
}

export function readValue(_source: ValueSource, _world: ValueWorld): Promise<string> {
  throw new Error('not yet');
}
