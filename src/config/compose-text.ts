// config/compose-text.ts: the text that a compose client makes of compose files. A stranger's, as those are.
import { parse } from 'yaml';
import { AgsError } from '../protocol/errors.ts';
import { visible } from '../lib/sanitize.ts';

export function parseComposeText(text: string): unknown {
  try {
    return parse(text);
  } catch (error) {
    throw new AgsError('service.unavailable', `The compose files cannot be understood: ${visible(String(error))}`);
  }
}
