import { AgsError } from '../protocol/errors.ts';
import type { Context } from './verb.ts';
export async function showHelp(_topics: readonly string[], _ctx: Context): Promise<number> { return 0; }
export function unknownVerb(word: string): AgsError { return new AgsError('usage.invalid', `ags has no command "${word}".`); }
