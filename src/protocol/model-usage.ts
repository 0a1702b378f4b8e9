// protocol/model-usage.ts: what an answer of a model used, and who is told. The gateway reads it from the answer itself, which no
// program inside can change.

/** In tokens. */
export interface ModelUsage {
  /** null: neither the answer nor the request names it. */
  readonly model: string | null;
  /** Neither read from a cache nor written to one. */
  readonly input: number;
  readonly cached: number;
  readonly cacheWrite: number;
  /** Written to a cache that lives for an hour. */
  readonly cacheWriteLong: number;
  readonly output: number;
  /** The answer did not say, or was cut off, so its size decides. */
  readonly estimated: boolean;
}

/** Keeps the account of a run's requests to models. No method throws. */
export interface ModelAccount {
  /** Why no further request may be sent; null: it may. `generates`: the model is asked for an answer, and nothing beside it. */
  refusal(generates: boolean): string | null;
  /** The model is asked for an answer; false: that is over, with or without one. */
  asking(open: boolean): void;
  /** False: the limit of turns is reached. A turn is a request with tools; it is given back unless the model answers it. */
  takeTurn(): boolean;
  giveTurnBack(): void;
  /** A request would begin a turn beyond the limit. The sentence that refuses it. */
  refuseTurn(): string;
  /** Whether every request must be one whose use can be counted. */
  readonly strict: boolean;
  answered(usage: ModelUsage): void;
  /** The model answered 429 or 5xx, or not at all (null). `retryAfterSeconds`: when it says it can be asked again. */
  failed(status: number | null, retryAfterSeconds: number | null): void;
}

export function tokensOf({ input, cached, cacheWrite, cacheWriteLong, output }: ModelUsage): {
  input: number;
  output: number;
} {
  return { input: input + cached + cacheWrite + cacheWriteLong, output };
}
