import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { taskPaths } from '../../src/store/layout.ts';
import type { StoredTask } from '../../src/store/tasks.ts';
import { holdTask } from '../../src/store/task-lock.ts';

const stateDir = mkdtempSync(join(tmpdir(), 'ags-hold-'));
const paths = taskPaths(stateDir, 'fix');
const stored = { task: { name: 'fix' }, paths } as StoredTask;

test('a task has one lock owner at a time, and none after it is removed', () => {
  mkdirSync(paths.root, { recursive: true });
  {
    using _held = holdTask(stored);
    expect(() => holdTask(stored)).toThrow(
      expect.objectContaining({ code: 'task.busy', message: 'Another ags command is working on fix.' }) as Error,
    );
  }
  holdTask(stored)[Symbol.dispose]();
  // The first owner removed the task.
  rmSync(stateDir, { recursive: true });
  expect(() => holdTask(stored)).toThrow(
    expect.objectContaining({ code: 'task.not-found', message: 'There is no task "fix".' }) as Error,
  );
});
