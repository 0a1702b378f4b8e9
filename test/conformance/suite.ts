// test/conformance/suite.ts: what every backend promises, tried out. A backend is done when this passes, and nothing about a
// backend may be relied on that is not tried here. It speaks SandboxSpec, Backend and Sandbox only.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'vitest';
import { filePromises } from './files.ts';
import { limitPromises } from './limits.ts';
import { createPlace, RUNNER, type Open } from './place.ts';
import { processPromises } from './processes.ts';
import { terminalPromises } from './terminal.ts';

/** `open` gives a backend that keeps what it needs in `directory`, which is of one sandbox alone. */
export function backendConformance(name: string, open: Open): void {
  if (process.env[RUNNER.word] !== undefined) return waitToBeKilled(open);
  describe(name, () => {
    processPromises(open);
    filePromises(open);
    limitPromises(open);
    terminalPromises(open);
  });
}

/** The other half of a test: this process is a runner in the middle of its work. */
function waitToBeKilled(open: Open): void {
  test('a runner at work', async () => {
    using place = await createPlace(open);
    const word = process.env[RUNNER.word] ?? '';
    const sandbox = await place.start(['sh', '-c', `setsid sleep ${word} & sleep ${word}; :`]);
    writeFileSync(join(place.root, '../pid'), String(process.pid));
    await sandbox.done;
  });
}
