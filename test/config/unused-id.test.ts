// test/config/unused-id.test.ts: root's sandboxes run as a user that is no account's.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { unusedId } from '../../src/config/unused-id.ts';
import { createAgentMachine } from '../agent-run/place.ts';
import { CALLERS } from '../harness.ts';

test('another ID is used if an account or a group has the usual one', () => {
  const directory = mkdtempSync(join(tmpdir(), 'ags-ids-'));
  const file = (name: string, ...ids: readonly number[]): string => {
    const path = join(directory, name);
    writeFileSync(path, `root:x:0:0::/root:/bin/sh\n# a comment\n${ids.map((id) => `a${id}:x:${id}:\n`).join('')}`);
    return path;
  };
  try {
    const [none, usual, both] = [file('none'), file('usual', 1001), file('both', 1001, 61_001)];
    expect(unusedId([none, none])).toBe(1001);
    expect(unusedId([usual, none])).toBe(61_001);
    expect(unusedId([none, usual])).toBe(61_001);
    expect(unusedId([none, both])).toBe(61_002);
    expect(unusedId([join(directory, 'missing')])).toBe(1001);
  } finally {
    rmSync(directory, { recursive: true });
  }
});

test.runIf(CALLERS.includes('root'))('no account can look into a sandbox of root', async () => {
  using machine = createAgentMachine('root');
  await machine.ags(['start', 'work', 'run: id -u; echo "$$" // wait: 600', '-a', 'demo', '-d']);
  const { output } = await machine.event('work', 'tool.finished');
  const [user = ''] = String(output).split('\n');
  const accounts = readFileSync('/etc/passwd', 'utf8').split('\n');
  expect(user).toMatch(/^[1-9]\d+$/);
  expect(accounts.filter((line) => line.split(':')[2] === user)).toEqual([]);
  await machine.ags(['stop', 'work']);
});
