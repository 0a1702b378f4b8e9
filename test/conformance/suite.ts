// test/conformance/suite.ts: the tests that every backend must pass. Nothing else about a backend may be relied on.
// It uses only SandboxSpec, Backend and Sandbox.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'vitest';
import { filePromises } from './files.ts';
import { limitPromises } from './limits.ts';
import { createPlace, RUNNER, type Open } from './place.ts';
import { processPromises } from './processes.ts';
import { terminalPromises } from './terminal.ts';

/** `open` returns a backend that keeps its files in `directory`, which belongs to one sandbox. */
export function backendConformance(name: string, open: Open): void {
  if (process.env[RUNNER.word] !== undefined) return waitToBeKilled(open);
  describe(name, () => {
    processPromises(open);
    filePromises(open);
    limitPromises(open);
    terminalPromises(open);
  });
}

/** Makes this process the runner that a test kills. */
function waitToBeKilled(open: Open): void {
  test('a runner at work', async () => {
    using place = await createPlace(open);
    const word = process.env[RUNNER.word] ?? '';
    const sandbox = await place.start(['sh', '-c', `setsid sleep ${word} & sleep ${word}; :`]);
    writeFileSync(join(place.root, '../pid'), String(process.pid));
    await sandbox.done;
  });
}
