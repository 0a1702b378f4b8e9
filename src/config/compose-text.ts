// config/compose-text.ts: parses the output of a compose client. It is as hostile as the compose files.
import { parse } from 'yaml';
import { AgsError } from '../protocol/errors.ts';
import { visible } from '../lib/sanitize.ts';

export function parseComposeText(text: string): unknown {
  try {
    return parse(text);
  } catch (error) {
    throw new AgsError('service.unavailable', `The compose files cannot be parsed: ${visible(String(error))}`);
  }
}
