// network/view.ts: the rules of a project or one of its tasks, its attempts, and its open asks.
import { formatRule } from '../protocol/network-rule.ts';
import type { NetworkRule } from '../protocol/network.ts';
import { expandRules, PRESETS } from '../config/network/presets.ts';
import type { StoredTask } from '../store/tasks.ts';
import { readAttempts, type Attempt } from './attempts.ts';
import { projectConfig } from './rule-files.ts';
import { ask, runningTasks } from '../queries/running.ts';
import type { HostContext } from '../run/host-context.ts';

export interface NetworkView {
  readonly attempts: readonly (Omit<Attempt, 'verdict'> & { readonly verdict: Attempt['verdict'] | 'asked' })[];
  readonly rules: readonly { readonly action: 'allow' | 'deny'; readonly text: string; readonly origin: string }[];
  readonly presets: readonly { readonly name: string; readonly hosts: readonly string[]; readonly used: boolean }[];
}

/** Without a project and a task: the attempts of all projects, and no rules. */
export async function viewNetwork(
  context: HostContext,
  of: { project: string | null; task: StoredTask | null },
): Promise<NetworkView> {
  const place = of.project ?? of.task?.task.project ?? null;
  const attempts = readAttempts(context, {
    ...(place === null ? {} : { project: place }),
    ...(of.task === null ? {} : { task: of.task.task.id }),
  });
  const config = place === null ? null : (await projectConfig({ ...context, cwd: place })).config;
  const live = of.task?.live === true ? await ask(of.task, { do: 'rules' }).catch(() => null) : null;
  const rules = live?.rules ?? (config === null ? [] : expandRules(config.network));
  const used = new Set(rules.flatMap(({ origin }) => /^built-in (.+)$/.exec(origin)?.[1] ?? []));
  return {
    attempts: [...(await waiting(context, of, place)), ...attempts],
    rules: rules.filter(({ origin }) => !origin.startsWith('built-in ')).map(ruleText),
    presets: Object.entries(PRESETS).map(([name, preset]) => ({ name, hosts: preset.rules, used: used.has(name) })),
  };
}

function ruleText(rule: NetworkRule): NetworkView['rules'][number] {
  return { action: rule.action, text: formatRule(rule), origin: rule.origin };
}

async function waiting(
  context: HostContext,
  of: { task: StoredTask | null },
  place: string | null,
): Promise<NetworkView['attempts']> {
  const tasks =
    of.task === null
      ? (await runningTasks(context, 'everywhere')).filter(({ task }) => place === null || task.project === place)
      : of.task.live
        ? [of.task]
        : [];
  const asks = await Promise.all(
    tasks.map(async (task) => ({ task, has: await ask(task, { do: 'asks' }).catch(() => null) })),
  );
  return asks.flatMap(({ task, has }) =>
    (has?.asks ?? []).map(({ host, port, sinceMs, count, program }) => ({
      host,
      port,
      verdict: 'asked' as const,
      why: 'Waiting for your answer.',
      program: program ?? null,
      task: task.task.id,
      tries: count,
      lastAtMs: sinceMs,
      bytesIn: 0,
      bytesOut: 0,
    })),
  );
}
