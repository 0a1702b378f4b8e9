// lib/package-file.ts: reads our package.json. The bundle is two folders below it, so this file must be too.
import { readFileSync } from 'node:fs';

export function readPackageFile(): string {
  return readFileSync(new URL('../../package.json', import.meta.url), 'utf8');
}

export function readVersion(): string {
  const { version } = JSON.parse(readPackageFile()) as { version: string };
  return version;
}
