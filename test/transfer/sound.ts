// test/transfer/sound.ts: a valid exported task made by hand, so tests can change it without running an agent.
import { gzipSync } from 'node:zlib';
import type { ExportManifest } from '../../src/protocol/export.ts';
import { blob, commit, makePack, objectId, tree, type PackObject } from '../git/hostile-pack.ts';
import type { Parts } from './parts.ts';

const [text, more] = [blob('one\n'), blob('two\n')];
const before = tree([['100644', 'a', text]]);
const after = tree([
  ['100644', 'a', text],
  ['100644', 'b', more],
]);

/** A commit object as git writes it. */
export function commitOn(of: PackObject, parent: string | null, message = 'work', header = ''): PackObject {
  const who = 'author a <a@b> 0 +0000\ncommitter a <a@b> 0 +0000';
  const line = parent === null ? '' : `parent ${parent}\n`;
  return { type: 'commit', data: Buffer.from(`tree ${objectId(of)}\n${line}${who}\n${header}\n${message}\n`) };
}

const ROOT_COMMIT = commit(before, 'first');
export const ROOT = objectId(ROOT_COMMIT);
export const WORK_COMMIT = commitOn(after, ROOT);
export const ROOT_OBJECTS: readonly PackObject[] = [text, before, ROOT_COMMIT];
export const WORK_OBJECTS: readonly PackObject[] = [more, after, WORK_COMMIT];
export const ROOT_PACK = makePack(ROOT_OBJECTS);

export const AT = '2026-01-01T00:00:00.000Z';

/** A task of the demo agent with one commit on the root. */
export function soundManifest(): ExportManifest {
  return {
    format: 1,
    ags: '1.0.0',
    exportedAt: AT,
    members: [],
    task: {
      name: 'work',
      createdAt: AT,
      goal: 'write: b two',
      agent: 'demo',
      interactive: false,
      maxSeconds: null,
      maxCostMicros: null,
      maxTurns: null,
    },
    run: { state: 'ready', startedAtMs: 1, endedAtMs: 2, exitCode: 0, label: 'demo', number: 1 },
    work: {
      objectFormat: 'sha1',
      root: ROOT,
      base: ROOT,
      commit: objectId(WORK_COMMIT),
      branch: 'main',
      notKept: null,
      refused: [],
    },
    merges: [],
    rules: { network: 'on', allow: [], deny: [], tcp: [], publish: [], reveal: [], envPass: [], limits: {} },
  };
}

export const SOUND_DECISION = {
  at: AT,
  by: 'connect',
  host: 'x',
  port: 1,
  verdict: 'denied',
  reason: '',
  bytesOut: 0,
  bytesIn: 0,
  ms: 1,
};
export const SOUND_EVENT = { type: 'agent.said', at: AT, text: 'hello' };

export function soundParts(): Parts {
  return {
    manifest: soundManifest(),
    members: {
      'base.pack': ROOT_PACK,
      'work.pack': makePack(WORK_OBJECTS),
      'events.jsonl.gz': gzipSync(`${JSON.stringify(SOUND_EVENT)}\n`),
      'network.jsonl.gz': gzipSync(''),
    },
  };
}
