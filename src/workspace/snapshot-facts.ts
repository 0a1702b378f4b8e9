// workspace/snapshot-facts.ts: caches facts about a snapshot beside it. A snapshot never changes, so each fact is computed once.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { replaceFile } from '../lib/files.ts';
import { shortHash } from '../lib/short-hash.ts';
import type { Snapshot } from './snapshots.ts';

export async function remembered<T>(base: Snapshot, what: string, about: unknown, find: () => Promise<T>): Promise<T> {
  const question = JSON.stringify(about);
  const file = join(base.layer.root, `${what}-${shortHash(question)}.json`);
  try {
    const known = JSON.parse(readFileSync(file, 'utf8')) as { question: string; answer: T };
    if (known.question === question) return known.answer;
  } catch {
    // The fact is not cached yet.
  }
  const answer = await find();
  replaceFile(file, JSON.stringify({ question, answer }));
  return answer;
}
