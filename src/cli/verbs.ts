// cli/verbs.ts: every command of ags, in the order of the help text. A verb's file is loaded only when it is called.
import type { Verb } from './verb.ts';

export interface VerbEntry {
  readonly group: string;
  /** Repeated from the verb so that the overview need not load them all; a test holds the two together. */
  readonly summary: string;
  load(): Promise<{ default: Verb }>;
}

export const VERBS = {
  exec: {
    group: 'Run',
    summary: 'run a command over this repository in a fresh sandbox',
    load: () => import('./verbs/exec.ts'),
  },
  shell: { group: 'Run', summary: 'open a shell in a fresh sandbox', load: () => import('./verbs/shell.ts') },
  plan: {
    group: 'Run',
    summary: 'show what a sandbox would be, without starting it',
    load: () => import('./verbs/plan.ts'),
  },
  review: {
    group: 'Review',
    summary: 'go through what a sandbox changed, file by file',
    load: () => import('./verbs/review.ts'),
  },
  diff: { group: 'Review', summary: 'show what a sandbox changed', load: () => import('./verbs/diff.ts') },
  list: {
    group: 'Review',
    summary: 'list sandboxes with changes, and running ones',
    load: () => import('./verbs/list.ts'),
  },
  rm: { group: 'Review', summary: 'throw a task and its changes away', load: () => import('./verbs/rm.ts') },
  cleanup: {
    group: 'Review',
    summary: 'remove what killed or finished sandboxes left behind',
    load: () => import('./verbs/cleanup.ts'),
  },
  allow: { group: 'Network', summary: 'let sandboxes reach a host', load: () => import('./verbs/allow.ts') },
  deny: { group: 'Network', summary: 'keep sandboxes from reaching a host', load: () => import('./verbs/deny.ts') },
  net: {
    group: 'Network',
    summary: 'show what may be reached, what was, and what waits for you',
    load: () => import('./verbs/net.ts'),
  },
  agents: {
    group: 'Agents',
    summary: 'list the agents; install, update and remove them',
    load: () => import('./verbs/agents.ts'),
  },
  auth: { group: 'Agents', summary: 'sign an agent in, once for all tasks', load: () => import('./verbs/auth.ts') },
  init: { group: 'Set up', summary: 'write a commented ags.yaml', load: () => import('./verbs/init.ts') },
  config: {
    group: 'Set up',
    summary: 'show the effective configuration and where each value comes from',
    load: () => import('./verbs/config.ts'),
  },
  trust: {
    group: 'Set up',
    summary: "approve what this project's ags.yaml asks for",
    load: () => import('./verbs/trust.ts'),
  },
  doctor: {
    group: 'Set up',
    summary: 'say what works on this machine and what does not',
    load: () => import('./verbs/doctor.ts'),
  },
  gateway: {
    group: 'Set up',
    summary: 'run the gateway on its own, for containers and clusters',
    load: () => import('./verbs/gateway.ts'),
  },
  completion: {
    group: 'Set up',
    summary: 'print a completion script for your shell',
    load: () => import('./verbs/completion.ts'),
  },
} as const satisfies Record<string, VerbEntry>;

export type VerbName = keyof typeof VERBS;
