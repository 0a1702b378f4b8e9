// cli/terminal/error-text.ts: what went wrong, for a terminal. Names in it may be an agent's.
import { createSanitizer } from '../../lib/sanitize.ts';
import type { AgsError } from '../../protocol/errors.ts';

export function errorText({ message, hint }: AgsError): string {
  return seen(`ags: ${message}\n${hint === undefined ? '' : `     ${hint.replaceAll('\n', '\n     ')}\n`}`);
}

export function seen(text: string): string {
  const sanitizer = createSanitizer();
  return sanitizer.push(text) + sanitizer.end();
}
