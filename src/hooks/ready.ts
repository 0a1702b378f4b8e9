// hooks/ready.ts: the hooks that come with ags, by their names in `hooks.use`.
import { HOOK_POINTS, type HookInput, type HookPoint, type ReadyHook } from '../protocol/hook.ts';
import { ALLOWED, type Answer, type Hook } from './hook.ts';
import { formatCommand } from './ready/format.ts';
import { logAction } from './ready/log.ts';
import { noSecrets } from './ready/no-secrets.ts';
import { protectBranches } from './ready/protect-branches.ts';

export interface ReadyTools {
  /** The file of the hook `log`. */
  readonly logFile: string;
  readonly timeoutMs: number;
  now(): Date;
  runInside(argv: readonly string[], input: HookInput, signal: AbortSignal): Promise<Answer>;
}

/** `log` comes first, so that it also records actions that another hook refuses. */
export function readyHooks(use: readonly ReadyHook[], tools: ReadyTools): Hook[] {
  return ORDER.filter((name) => use.includes(name)).flatMap((name) =>
    POINTS[name].map((point) => ({
      name,
      point,
      timeoutMs: tools.timeoutMs,
      ask: (input, signal) => ask(name, tools, input, signal),
    })),
  );
}

const ORDER = ['log', 'protect-branches', 'no-secrets', 'format'] as const satisfies readonly ReadyHook[];

const POINTS: Readonly<Record<ReadyHook, readonly HookPoint[]>> = {
  log: HOOK_POINTS.filter((point) => point !== 'pre-bash' && point !== 'pre-writes'),
  'protect-branches': ['pre-bash', 'pre-writes'],
  'no-secrets': ['pre-bash', 'pre-writes'],
  format: ['post-writes'],
};

async function ask(name: ReadyHook, tools: ReadyTools, input: HookInput, signal: AbortSignal): Promise<Answer> {
  switch (name) {
    case 'log':
      return logAction(tools.logFile, () => tools.now(), input);
    case 'protect-branches':
      return protectBranches(input);
    case 'no-secrets':
      return noSecrets(input);
    case 'format': {
      const argv = formatCommand(input);
      return argv === null ? ALLOWED : tools.runInside(argv, input, signal);
    }
  }
}
