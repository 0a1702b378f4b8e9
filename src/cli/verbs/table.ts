// cli/verbs/table.ts: every command of ags, in the order of the help text. A verb's file is loaded only when it is called.
import type { Verb } from '../verb.ts';

export interface VerbEntry {
  readonly group: string;
  /** Repeated from the verb so that the overview need not load them all; a test holds the two together. */
  readonly summary: string;
  load(): Promise<{ default: Verb }>;
}

export const VERBS = {
  start: {
    group: 'Agents',
    summary: 'hand a goal to an agent, on a branch and in a sandbox of its own',
    load: () => import('./start.ts'),
  },
  logs: { group: 'Agents', summary: 'show what an agent does and did', load: () => import('./logs.ts') },
  show: {
    group: 'Agents',
    summary: 'say how a task stands: goal, state, changes, cost, refused hosts',
    load: () => import('./show.ts'),
  },
  send: {
    group: 'Agents',
    summary: 'tell an agent something, now or as its next turn',
    load: () => import('./send.ts'),
  },
  attach: {
    group: 'Agents',
    summary: 'sit down at the terminal of an agent (ags start -i)',
    load: () => import('./attach.ts'),
  },
  stop: {
    group: 'Agents',
    summary: 'stop an agent; what it did so far is kept',
    load: () => import('./stop.ts'),
  },
  continue: {
    group: 'Agents',
    summary: 'let an agent that stopped, failed or was killed go on',
    load: () => import('./continue.ts'),
  },
  restart: {
    group: 'Agents',
    summary: 'give the same goal to a fresh agent; the earlier result is kept',
    load: () => import('./restart.ts'),
  },
  fork: {
    group: 'Agents',
    summary: 'give another goal, or another agent, what a task has done so far',
    load: () => import('./fork.ts'),
  },
  exec: {
    group: 'Run',
    summary: 'run a command over this repository in a fresh sandbox',
    load: () => import('./exec.ts'),
  },
  shell: {
    group: 'Run',
    summary: 'open a shell in a fresh sandbox, or beside an agent in its own',
    load: () => import('./shell.ts'),
  },
  plan: {
    group: 'Run',
    summary: 'show what a sandbox would be, without starting it',
    load: () => import('./plan.ts'),
  },
  review: {
    group: 'Review',
    summary: 'go through what a sandbox changed, file by file',
    load: () => import('./review.ts'),
  },
  diff: { group: 'Review', summary: 'show what a sandbox changed', load: () => import('./diff.ts') },
  check: {
    group: 'Review',
    summary: 'run the checks on what a branch would be after a merge',
    load: () => import('./check.ts'),
  },
  merge: {
    group: 'Review',
    summary: 'put what an agent did onto a branch of yours',
    load: () => import('./merge.ts'),
  },
  resolve: {
    group: 'Review',
    summary: 'hand the conflicts of a task with your branch to an agent',
    load: () => import('./resolve.ts'),
  },
  apply: {
    group: 'Review',
    summary: 'put what a sandbox changed into your files, uncommitted',
    load: () => import('./apply.ts'),
  },
  open: {
    group: 'Review',
    summary: 'open what an agent did in your editor, in a directory of its own',
    load: () => import('./open.ts'),
  },
  undo: { group: 'Review', summary: 'take the last merge back', load: () => import('./undo.ts') },
  list: {
    group: 'Review',
    summary: 'list tasks: who needs you, what waits for a review, what runs',
    load: () => import('./list.ts'),
  },
  rm: { group: 'Review', summary: 'throw a task and its changes away', load: () => import('./rm.ts') },
  cleanup: {
    group: 'Review',
    summary: 'remove what killed or finished sandboxes left behind',
    load: () => import('./cleanup.ts'),
  },
  export: {
    group: 'Review',
    summary: 'write a task into one file, for another machine',
    load: () => import('./export.ts'),
  },
  import: {
    group: 'Review',
    summary: 'bring a task back from a file that ags export wrote',
    load: () => import('./import.ts'),
  },
  allow: { group: 'Network', summary: 'let sandboxes reach a host', load: () => import('./allow.ts') },
  deny: { group: 'Network', summary: 'keep sandboxes from reaching a host', load: () => import('./deny.ts') },
  net: {
    group: 'Network',
    summary: 'show what may be reached, what was, and what waits for you',
    load: () => import('./net.ts'),
  },
  services: {
    group: 'Agents',
    summary: 'show the services of tasks: state, logs, URLs, a client',
    load: () => import('./services.ts'),
  },
  serve: {
    group: 'Browser',
    summary: 'serve the page and the API to this machine',
    load: () => import('./serve.ts'),
  },
  web: {
    group: 'Browser',
    summary: 'open the page in your browser, and serve it if nobody does',
    load: () => import('./web.ts'),
  },
  agents: {
    group: 'Agents',
    summary: 'list the agents; install, update and remove them',
    load: () => import('./agents.ts'),
  },
  auth: { group: 'Agents', summary: 'sign an agent in, once for all tasks', load: () => import('./auth.ts') },
  image: {
    group: 'Set up',
    summary: 'build, fetch, list and remove images that sandboxes stand on',
    load: () => import('./image.ts'),
  },
  init: { group: 'Set up', summary: 'write a commented ags.yaml', load: () => import('./init.ts') },
  config: {
    group: 'Set up',
    summary: 'show the effective configuration and where each value comes from',
    load: () => import('./config.ts'),
  },
  trust: {
    group: 'Set up',
    summary: "approve what this project's ags.yaml and hooks ask for",
    load: () => import('./trust.ts'),
  },
  doctor: {
    group: 'Set up',
    summary: 'say what works on this machine and what does not',
    load: () => import('./doctor.ts'),
  },
  gateway: {
    group: 'Set up',
    summary: 'run the gateway on its own, for containers and clusters',
    load: () => import('./gateway.ts'),
  },
  devcontainer: {
    group: 'Set up',
    summary: 'write a .devcontainer for editors, with the rules of a sandbox',
    load: () => import('./devcontainer.ts'),
  },
  completion: {
    group: 'Set up',
    summary: 'print a completion script for your shell',
    load: () => import('./completion.ts'),
  },
} as const satisfies Record<string, VerbEntry>;

export type VerbName = keyof typeof VERBS;
