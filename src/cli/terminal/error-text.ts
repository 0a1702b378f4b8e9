// cli/terminal/error-text.ts: an error as text for the terminal. It may contain names from an agent, so it is sanitized.
import { createSanitizer } from '../../lib/sanitize.ts';
import type { AgsError } from '../../protocol/errors.ts';

export function errorText({ message, hint }: AgsError): string {
  return seen(`ags: ${message}\n${hint === undefined ? '' : `     ${hint.replaceAll('\n', '\n     ')}\n`}`);
}

export function seen(text: string): string {
  const sanitizer = createSanitizer();
  return sanitizer.push(text) + sanitizer.end();
}
