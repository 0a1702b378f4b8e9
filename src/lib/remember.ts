// lib/remember.ts: writes a cache file. A failure, as in a read-only home or on a full disk, is ignored.
import { mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { errorCode } from './error-code.ts';
import { replaceFile } from './files.ts';

export function remember(path: string, content: string): void {
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    replaceFile(path, content);
  } catch (error) {
    if (errorCode(error) === undefined) throw error;
  }
}
