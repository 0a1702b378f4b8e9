// agents/prices.ts: the list prices of models, as data, and what an answer costs by them. The user's own prices come first.
import type { ModelUsage } from '../protocol/model-usage.ts';

/** In dollars for a million tokens. */
export interface ModelPrice {
  readonly input: number;
  readonly output: number;
  /** Input that was read from a cache; the default is the price of input. */
  readonly cached?: number | undefined;
  /** Input that was written to a cache; the default is the price of input. */
  readonly cacheWrite?: number | undefined;
}

export type ModelPrices = Readonly<Record<string, ModelPrice>>;

/** When these list prices were looked up. */
export const PRICES_AS_OF = '2026-11-05';

/** Most providers sell cached input at a tenth. */
const listed = (input: number, output: number, cached = input / 10): ModelPrice => ({ input, output, cached });
const claude = (input: number, output: number, cached?: number): ModelPrice => ({
  ...listed(input, output, cached),
  cacheWrite: input * 1.25,
});

const LIST_PRICES: ModelPrices = {
  'claude-fable-5-1': claude(10, 50, 0.25),
  'claude-fable-5': claude(10, 50),
  'claude-opus-5-5': claude(4, 20, 0.2),
  'claude-opus-5': claude(5, 25),
  'claude-opus-4-8': claude(5, 25),
  'claude-opus-4-7': claude(5, 25),
  'claude-opus-4-6': claude(5, 25),
  'claude-opus-4-5': claude(5, 25),
  'claude-sonnet-5-5': claude(2, 10),
  'claude-sonnet-5': claude(2, 10),
  'claude-sonnet-4-6': claude(3, 15),
  'claude-sonnet-4-5': claude(3, 15),
  'claude-haiku-4-5': claude(1, 5),
  'gpt-6.1-sol': listed(2, 10, 0.1),
  'gpt-6.1-terra': listed(1, 5, 0.05),
  'gpt-6-astra': listed(10, 50),
  'gpt-6-sol': listed(2, 10),
  'gpt-6-luna': listed(0.1, 0.5),
  'gpt-5.6': listed(5, 30),
  'gpt-5.6-sol': listed(5, 30),
  'gpt-5.6-terra': listed(2, 12),
  'gpt-5.6-luna': listed(0.2, 1.2),
  'gpt-5.5': listed(5, 30),
  'gpt-5.5-pro': { input: 30, output: 180 },
  'gpt-5.4': listed(2.5, 15),
  'gpt-5.4-mini': listed(0.75, 4.5),
  'gpt-5.4-nano': listed(0.2, 1.25),
  'gpt-5.3-codex': listed(1.75, 14),
  'gemini-3.8-flash': listed(0.75, 3.75),
  'gemini-3.5-flash-lite': listed(0.3, 2.5),
  'gemini-3.1-flash-lite': listed(0.25, 1.5),
  'gemini-3.5-flash': listed(1.5, 9),
  'gemini-3.1-pro-preview': listed(2, 12),
  'gemini-3.1-pro-preview-customtools': listed(2, 12),
  'gemini-3-flash-preview': listed(0.5, 3),
  'gemini-3-pro-preview': listed(2, 12),
  'gemini-2.5-pro': listed(1.25, 10),
  'gemini-2.5-flash-lite': listed(0.1, 0.4),
  'gemini-2.5-flash': listed(0.3, 2.5),
  'qwen3-coder-plus': listed(1, 5),
};

/** null: no price is known. "vendor/model" and a name with a date stand for the model itself. */
export function priceOf(model: string, own: ModelPrices): ModelPrice | null {
  const bare = model.replace(/^.*\//, '').replace(/:.*$/, '');
  const undated = bare.replace(/[-@](?:\d{8}|\d{4}-\d{2}-\d{2})$/, '');
  for (const prices of [own, LIST_PRICES])
    for (const name of [model, bare, undated, undated.replaceAll('.', '-')])
      if (Object.hasOwn(prices, name)) return prices[name] ?? null;
  return null;
}

/** In millionths of a dollar; a fraction counts as one. */
export function costOf(usage: ModelUsage, price: ModelPrice): number {
  const { input, cached, cacheWrite, cacheWriteLong, output } = usage;
  const write = price.cacheWrite ?? price.input;
  // Twice the price of input for an hour, which is 1.6 times that of a short cache.
  const longWrite = price.cacheWrite === undefined ? write : write * 1.6;
  return Math.ceil(
    input * price.input +
      cached * (price.cached ?? price.input) +
      cacheWrite * write +
      cacheWriteLong * longWrite +
      output * price.output,
  );
}
