// protocol/config/forms.ts: building blocks of the configuration schema. `error` names the expected value, in words.
import { z } from 'zod';
import { PATTERN, WORDS } from './words.ts';

export const flag = z.boolean({ error: 'true or false' });
export const text = (pattern: RegExp, expected: string) =>
  z.string({ error: expected }).regex(pattern, { error: expected });
export const list = <T extends z.ZodType>(item: T, expected: string) =>
  z.array(item, { error: `a list of ${expected}` });
export const count = (min: number, max: number) => {
  const error = `a whole number from ${min} to ${max}`;
  return z.int({ error }).min(min, { error }).max(max, { error });
};
export const bytes = (form: RegExp, error: string) =>
  z.union([z.int({ error }).positive({ error }), text(form, error)], { error });
export const pattern = text(PATTERN, WORDS.pattern);
export const section = <T extends z.ZodRawShape>(shape: T) =>
  z.strictObject(shape, { error: 'keys, each with its value' });
export const words = (expected: string) => z.string({ error: expected });
