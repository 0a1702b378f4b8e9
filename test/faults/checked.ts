// test/faults/checked.ts: interrupts checks, alone or before a merge. Invariant: no merge happens without passed checks, and the checks can run
// again.
import { join } from 'node:path';
import type { Result } from '../harness.ts';
import type { Begun } from './acts.ts';
import { readIfThere, type Ground } from './ground.ts';

const CONFIG = '../../.config/ags/config.yaml';

/** `told`: records a merge that ags reported as done. */
export function checkTask(ground: Ground, task: string, told: ((result: Result) => void) | null): Begun {
  const before = ground.machine.read(CONFIG);
  const checks = `checks:\n  timeout: 10m\n  run: ['sleep 0.3; test -e f1.txt', 'git status --porcelain']\n`;
  ground.machine.write(CONFIG, before + checks);
  const args = told === null ? ['check', task] : ['merge', task, '-y', '--check'];
  const isMerged = (): boolean => stateIn(ground, task, 'run.json') === 'merged';
  return {
    running: ground.start(...args),
    task,
    async end(result) {
      told?.(result);
      const { code } = result;
      const passed = stateIn(ground, task, 'checks.json') === 'passed';
      const again = isMerged() ? null : await ground.ags('check', task);
      ground.machine.write(CONFIG, before);
      return [
        ...(isMerged() && !passed ? [`${task} is merged although its checks did not pass`] : []),
        ...(told === null && code === 0 && !passed
          ? [`the checks of ${task} were reported as passed, but did not pass`]
          : []),
        ...(again === null || again.code === 0 ? [] : [`the next checks ended with ${again.code}: ${again.stderr}`]),
      ];
    },
  };
}

const stateIn = ({ stateDir }: Ground, task: string, name: string): unknown =>
  (JSON.parse(readIfThere(join(stateDir, 'tasks', task, name)) ?? '{}') as { state?: unknown }).state;
