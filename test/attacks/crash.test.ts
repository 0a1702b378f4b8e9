// test/attacks/crash.test.ts: a crash inside starts no crash handler on the host, which the kernel would run as root.
// The setting belongs to the machine: the test points it to a program that only counts.
// needs: sandbox
import { spawnSync } from 'node:child_process';
import {
  accessSync,
  chmodSync,
  constants,
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { until } from '../exec/given.ts';
import { CALLERS, createMachine } from '../harness.ts';

const PATTERN = '/proc/sys/kernel/core_pattern';
const CRASH = 'ulimit -c 0; ulimit -c unlimited; kill -SEGV $$';

let dir: string;
let before: string;
beforeAll(() => {
  if (!mayBeSet()) return;
  // Not in /tmp: the kernel looks for the handler in its own mount namespace.
  dir = mkdtempSync('/var/tmp/ags-crash-');
  before = readFileSync(PATTERN, 'utf8');
  writeFileSync(join(dir, 'handler'), `#!/bin/sh\necho "$1" >> ${dir}/handled\ncat > /dev/null\n`);
  for (const path of [dir, join(dir, 'handler')]) chmodSync(path, 0o755);
  writeFileSync(PATTERN, `|${dir}/handler %E`);
});
afterAll(() => {
  if (!mayBeSet()) return;
  writeFileSync(PATTERN, before);
  rmSync(dir, { recursive: true });
});

/** The programs that crashed; those of other tests may be among them. */
const handled = (name: string): string[] =>
  existsSync(join(dir, 'handled'))
    ? readFileSync(join(dir, 'handled'), 'utf8')
        .split('\n')
        .filter((line) => line.endsWith(name))
    : [];

test.runIf(mayBeSet()).each(CALLERS)('as %s: a crash inside starts nothing outside', async (caller) => {
  using machine = createMachine(caller);
  const name = `crash-${caller}`;
  const crash = `cp /bin/sh /tmp/${name} && exec /tmp/${name} -c '${CRASH}'`;
  expect((await machine.ags(['exec', '--', 'sh', '-c', crash])).code).toBe(128 + 11);
  // On the host, the same limit starts the handler: once it has run, every earlier crash has been handled too.
  const outside = `outside-${caller}`;
  spawnSync('sh', ['-c', `cp /bin/sh ${dir}/${outside} && exec ${dir}/${outside} -c 'ulimit -c 0; kill -SEGV $$'`]);
  await until(() => handled(outside).length === 1);
  await sleep(500);
  expect(handled(name)).toEqual([]);
});

function mayBeSet(): boolean {
  try {
    accessSync(PATTERN, constants.W_OK);
    return process.getuid?.() === 0;
  } catch {
    return false;
  }
}
