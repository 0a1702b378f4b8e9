// cli/page-place.ts: where the built page is, beside what runs.
import { fileURLToPath } from 'node:url';

export function pagePlace(): string {
  return fileURLToPath(new URL('../../dist/web', import.meta.url));
}
