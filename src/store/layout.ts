// store/layout.ts: where things are in the state directory. The directory of a task is complete: it can be carried away whole.
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
  /** Bare repository with what was captured. */
  readonly staging: string;
  readonly journal: string;
  /** Of agents alone: what the agent printed, word for word. */
  readonly agentLog: string;
  /** What the runner itself had to say when it could say it nowhere else. */
  readonly runnerLog: string;
  /** Messages for the agent that it has not had yet, one file each. */
  readonly inbox: string;
  /** The last checks, and what they printed. */
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

/** In the home and in /tmp, with the process in their names, while `ags doctor --attack` runs: what is left of one that was killed is known. */
export const STAGE_PREFIX = '.ags-attack-';
