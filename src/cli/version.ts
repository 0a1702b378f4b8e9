// cli/version.ts: the version that package.json states, read when asked for.
import { readFileSync } from 'node:fs';

export function readVersion(): string {
  const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
    version: string;
  };
  return version;
}
