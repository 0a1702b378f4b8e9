// cli/verbs/table.ts: every command of ags, in the order of the help text. A command's file is loaded only when the command is called.
import { type VerbEntry } from '../verb.ts';

export const VERBS = {
  start: {
    group: 'Agents',
    summary: 'give a goal to an agent, with its own branch and sandbox',
    load: () => import('./start.ts'),
  },
  logs: { group: 'Agents', summary: 'show the log of agents', load: () => import('./logs.ts') },
  show: {
    group: 'Agents',
    summary: 'show tasks: goal, state, changes, cost, refused hosts',
    load: () => import('./show.ts'),
  },
  send: {
    group: 'Agents',
    summary: 'send a message to an agent',
    load: () => import('./send.ts'),
  },
  attach: {
    group: 'Agents',
    summary: 'connect to the terminal of an agent (ags start -i)',
    load: () => import('./attach.ts'),
  },
  stop: {
    group: 'Agents',
    summary: 'stop an agent and keep its work so far',
    load: () => import('./stop.ts'),
  },
  continue: {
    group: 'Agents',
    summary: 'resume agents that stopped, failed or were killed',
    load: () => import('./continue.ts'),
  },
  restart: {
    group: 'Agents',
    summary: 'start the same goal again; the earlier result is kept',
    load: () => import('./restart.ts'),
  },
  fork: {
    group: 'Agents',
    summary: 'start a new task from the files of another one',
    load: () => import('./fork.ts'),
  },
  exec: {
    group: 'Run',
    summary: 'run a command on this repository in a fresh sandbox',
    load: () => import('./exec.ts'),
  },
  shell: {
    group: 'Run',
    summary: 'open a shell in a fresh sandbox, or in that of a running agent',
    load: () => import('./shell.ts'),
  },
  plan: {
    group: 'Run',
    summary: 'show the plan of a sandbox without starting it',
    load: () => import('./plan.ts'),
  },
  review: {
    group: 'Review',
    summary: 'review the changes of a task, file by file',
    load: () => import('./review.ts'),
  },
  diff: { group: 'Review', summary: 'show what a sandbox changed', load: () => import('./diff.ts') },
  check: {
    group: 'Review',
    summary: 'run the checks on the result of a merge before merging',
    load: () => import('./check.ts'),
  },
  merge: {
    group: 'Review',
    summary: 'merge the work of an agent into a branch of yours',
    load: () => import('./merge.ts'),
  },
  resolve: {
    group: 'Review',
    summary: 'let an agent resolve the conflicts of a task with your branch',
    load: () => import('./resolve.ts'),
  },
  apply: {
    group: 'Review',
    summary: 'write the changes of a task into your files, uncommitted',
    load: () => import('./apply.ts'),
  },
  open: {
    group: 'Review',
    summary: 'open the work of an agent in your editor, in its own directory',
    load: () => import('./open.ts'),
  },
  undo: { group: 'Review', summary: 'undo the last merge', load: () => import('./undo.ts') },
  list: {
    group: 'Review',
    summary: 'list tasks: needing an answer, ready for review, running',
    load: () => import('./list.ts'),
  },
  ui: {
    group: 'Review',
    summary: 'follow, answer, review and merge tasks on a full screen',
    load: () => import('./ui.ts'),
  },
  rm: { group: 'Review', summary: 'delete a task and its changes', load: () => import('./rm.ts') },
  cleanup: {
    group: 'Review',
    summary: 'remove leftovers of killed or finished sandboxes',
    load: () => import('./cleanup.ts'),
  },
  export: {
    group: 'Review',
    summary: 'write a task into one file for another machine',
    load: () => import('./export.ts'),
  },
  import: {
    group: 'Review',
    summary: 'read a task from a file that ags export wrote',
    load: () => import('./import.ts'),
  },
  allow: { group: 'Network', summary: 'allow sandboxes to reach a host', load: () => import('./allow.ts') },
  deny: { group: 'Network', summary: 'keep sandboxes from reaching a host', load: () => import('./deny.ts') },
  net: {
    group: 'Network',
    summary: 'show network rules, logs and waiting connections',
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
    summary: 'open the page in your browser; serve it if needed',
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
    summary: 'build, pull, list and remove images for sandboxes',
    load: () => import('./image.ts'),
  },
  init: { group: 'Set up', summary: 'write an ags.yaml for this project', load: () => import('./init.ts') },
  config: {
    group: 'Set up',
    summary: 'show the effective configuration and the origin of each value',
    load: () => import('./config.ts'),
  },
  home: {
    group: 'Set up',
    summary: 'show or empty the home that stays between tasks',
    load: () => import('./home.ts'),
  },
  trust: {
    group: 'Set up',
    summary: "approve what this project's ags.yaml and hooks ask for",
    load: () => import('./trust.ts'),
  },
  doctor: {
    group: 'Set up',
    summary: 'check what works on this machine and what does not',
    load: () => import('./doctor.ts'),
  },
  gateway: {
    group: 'Set up',
    summary: 'run the gateway by itself, for containers and clusters',
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
