// store/layout.ts: paths in the state directory. A task's directory is complete and can be moved as a whole.
import { join } from 'node:path';

export interface TaskPaths {
  readonly root: string;
  readonly task: string;
  readonly run: string;
  readonly changes: string;
  readonly events: string;
  readonly lock: string;
  /** Everything the backend mounts. */
  readonly runDir: string;
  readonly upper: string;
  readonly work: string;
  readonly home: string;
  readonly git: string;
  /** The project's files in copy mode. */
  readonly copy: string;
  /** Bare repository with captured work. */
  readonly staging: string;
  readonly journal: string;
  /** Only for agents: the agent's output, word for word. */
  readonly agentLog: string;
  /** Messages of the runner that it could not report elsewhere. */
  readonly runnerLog: string;
  /** Messages that the agent has not received yet, one file each. */
  readonly inbox: string;
  /** The last checks, and their output. */
  readonly checks: string;
  readonly checksDir: string;
  readonly checksLock: string;
  /** Services beside it: their states, logs and data. */
  readonly services: string;
  /** Earlier runs of the task, by number. */
  readonly earlier: string;
}

export function tasksDir(stateDir: string): string {
  return join(stateDir, 'tasks');
}

export function taskPaths(stateDir: string, id: string): TaskPaths {
  const root = join(tasksDir(stateDir), id);
  const runDir = join(root, 'run');
  return {
    root,
    task: join(root, 'task.json'),
    run: join(root, 'run.json'),
    changes: join(root, 'changes.json'),
    events: join(root, 'events.jsonl'),
    lock: join(root, 'lock'),
    runDir,
    upper: join(runDir, 'upper'),
    work: join(runDir, 'work'),
    home: join(runDir, 'home'),
    git: join(runDir, 'git'),
    copy: join(runDir, 'copy'),
    staging: join(root, 'staging.git'),
    journal: join(root, 'journal'),
    agentLog: join(root, 'agent.log'),
    runnerLog: join(root, 'runner.log'),
    inbox: join(root, 'inbox'),
    checks: join(root, 'checks.json'),
    checksDir: join(root, 'checks'),
    checksLock: join(root, 'checks.lock'),
    services: join(root, 'services'),
    earlier: join(root, 'earlier'),
  };
}

/** Prefix, followed by the process ID, of files in the home and in /tmp while `ags doctor --attack` runs; identifies leftovers. */
export const STAGE_PREFIX = '.ags-attack-';
