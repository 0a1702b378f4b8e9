// test/attacks/greed.test.ts: a greedy program counts as limited only if the limit it tried is what stopped it. Real programs of the table,
// without a sandbox and under limits of the shell, and verdicts about the reasons why a sandbox ended.
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { GreedAttack } from '../../src/attack/table/attack.ts';
import { greedProgram, judgeGreed, type GreedVerdict, GREED_ATTACKS } from '../../src/attack/table/greed-programs.ts';

const REASONS = {
  'limits.memory': 'Stopped: it used 300 MB of memory, the limit is 256 MB (limits.memory).',
  'limits.disk': 'Stopped: it wrote 51 MB, the limit is 50 MB (limits.disk).',
  'limits.time': 'Stopped: time limit of 60s reached (limits.time).',
  'free space': 'Stopped: the disk is nearly full (1 GB free, 2 GB are kept free).',
} as const;
type Reason = keyof typeof REASONS;
const OWN: Readonly<Record<string, readonly Reason[]>> = {
  'res-memory': ['limits.memory'],
  'res-memory-files': ['limits.memory'],
  'res-disk': ['limits.disk'],
  'res-time': ['limits.time'],
};

test.for(GREED_ATTACKS.map((one) => [one.id, one] as const))('%s is limited by its own limit alone', ([id, attack]) => {
  for (const reason of Object.keys(REASONS) as Reason[]) {
    const found = judgeGreed(attack, { said: 'began\n', ended: REASONS[reason], exitCode: 137 });
    expect(found, reason).toEqual(
      OWN[id]?.includes(reason) === true
        ? { held: REASONS[reason] }
        : { wrong: `its limit was not seen to hold: ${REASONS[reason]}` },
    );
  }
  expect(judgeGreed(attack, { said: 'began\nrefused EACCES\nended\n', ended: null, exitCode: 0 })).toEqual({
    wrong: 'its limit was not seen to hold: it met EACCES',
  });
  expect(judgeGreed(attack, { said: 'began\nended\n', ended: null, exitCode: 0 })).toEqual({
    wrong: 'its limit was not seen to hold: it was neither refused nor ended',
  });
  expect(judgeGreed(attack, { said: 'began\ngot it\n', ended: REASONS['limits.time'], exitCode: 137 })).toEqual({
    wrong: 'it got more than it was given',
  });
  expect(judgeGreed(attack, { said: 'began\nno way\n', ended: null, exitCode: 9 })).toEqual({
    wrong: 'its limit was not seen to hold: it ended with 9, saying no way',
  });
});

test('a silent kill counts as the memory limit on a remote engine, and as nothing on a local one', () => {
  const heldIn = (remote: boolean): string[] =>
    GREED_ATTACKS.filter(
      (one) => 'held' in judgeGreed(one, { said: 'began\n', ended: null, exitCode: 137, far: remote }),
    ).map(({ id }) => id);
  expect(heldIn(true)).toEqual(['res-memory', 'res-memory-files']);
  expect(heldIn(false)).toEqual([]);
});

describe('without a sandbox', () => {
  test('one file is limited if it may not grow, not if it cannot be created', () => {
    expect(run('res-file-size', 'ulimit -f 16384')).toEqual({ held: 'refused at the limit (EFBIG)' });
    expect(run('res-file-size', 'mkdir huge')).toEqual({
      wrong: expect.stringMatching(/^its limit was not seen to hold: it ended with \d+, saying huge: Is a directory/),
    });
    expect(run('res-file-size', ':')).toEqual({ wrong: 'it got more than it was given' });
  });

  test('memory is limited if perl gets no more, not if perl ends in another way', () => {
    expect(run('res-memory', 'ulimit -v 400000')).toEqual({ held: 'Out of memory' });
    expect(run('res-memory', 'ulimit -t 0')).toHaveProperty('wrong');
  });

  test('open files are limited if no more can be opened', () => {
    expect(run('res-open-files', 'ulimit -n 256')).toEqual({ held: 'refused at the limit (EMFILE)' });
    expect(run('res-open-files', ':')).toEqual({ wrong: 'it got more than it was given' });
  });
});

function run(id: string, before: string): GreedVerdict {
  const attack = GREED_ATTACKS.find((one) => one.id === id) as GreedAttack;
  const dir = mkdtempSync(join(tmpdir(), 'ags-greed-'));
  try {
    mkdirSync(join(dir, 'in'));
    const { stdout, stderr, status } = spawnSync(
      'sh',
      ['-c', `${before}; exec perl -e "$1"`, 'sh', greedProgram(attack)],
      {
        cwd: join(dir, 'in'),
        encoding: 'utf8',
      },
    );
    return judgeGreed(attack, { said: `${stdout}${stderr}`, ended: null, exitCode: status ?? -1 });
  } finally {
    rmSync(dir, { recursive: true });
  }
}
