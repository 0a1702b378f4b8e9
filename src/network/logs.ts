// network/logs.ts: finds the network log that a command means, and the hosts that recorded runs of a project wanted.
// Invariant: a log outlives its task; lines after damage are not used.
import { AgsError } from '../protocol/errors.ts';
import { visible } from '../lib/sanitize.ts';
import { hostAndPort } from '../protocol/host-name.ts';
import { parseRule } from '../protocol/network-rule.ts';
import type { Decision, NetworkRule } from '../protocol/network.ts';
import { taskPaths } from '../store/layout.ts';
import { readNetworkLog, readNetworkRun } from '../store/network-log-reader.ts';
import { listNetworkLogs, networkLogFile, type NetworkLogFile } from '../store/network-log.ts';
import { currentProject, runnerLives } from '../queries/entries.ts';
import { mentions } from './change-rules.ts';
import { runningTasks } from '../queries/running.ts';
import type { HostContext } from '../run/host-context.ts';

/** `name`: a task's name, the beginning of one, or "@"; without it, the latest run of this project. */
export async function findLog(context: HostContext, name: string | undefined, live: boolean): Promise<NetworkLogFile> {
  const logs = listNetworkLogs(context.stateDir);
  if (name !== undefined && name !== '@') {
    const fitting = logs.filter(({ task }) => task === name || (name !== '' && task.startsWith(name)));
    const exact = fitting.find(({ task }) => task === name);
    const [first] = fitting;
    if (new Set(fitting.map(({ task }) => task)).size > 1 && exact === undefined)
      throw new AgsError('task.ambiguous', `Several tasks begin with "${visible(name)}".`, {
        hint: `Which one?\n${[...new Set(fitting.map(({ task }) => task))].map((one) => `  ${one}`).join('\n')}`,
      });
    return exact ?? first ?? (await logToCome(context, name, live)) ?? noLog(name);
  }
  const coming = live ? await logToCome(context, undefined, live) : null;
  if (coming !== null) return coming;
  const project = await currentProject(context);
  const here = logs.find(({ file }) => project === null || readNetworkRun(file)?.project === project);
  return here ?? noLog(undefined);
}

/** A running task that has not used the network has no log yet; this is where it will be. */
async function logToCome(
  context: HostContext,
  name: string | undefined,
  live: boolean,
): Promise<NetworkLogFile | null> {
  if (!live) return null;
  const tasks = await runningTasks(context, name === undefined ? 'here' : 'everywhere');
  const [latest] = tasks
    .filter(({ task }) => name === undefined || task.id.startsWith(name))
    .toSorted((a, b) => b.run.startedAtMs - a.run.startedAtMs);
  if (latest === undefined) return null;
  const { task, run } = latest;
  return {
    file: networkLogFile(context.stateDir, task.id, run.startedAtMs),
    task: task.id,
    startedAtMs: run.startedAtMs,
  };
}

function noLog(name: string | undefined): never {
  throw new AgsError(
    'task.not-found',
    name === undefined
      ? 'No run of this project has used the network yet.'
      : `There is no log of a task "${visible(name)}".`,
    { hint: 'Tasks of all projects: ags list --all' },
  );
}

/** Is a runner still writing to it? */
export function isGoing(context: HostContext, { task }: NetworkLogFile): boolean {
  return runnerLives(taskPaths(context.stateDir, task));
}

export interface Wanted {
  readonly host: string;
  readonly port: number;
  readonly count: number;
  readonly programs: readonly string[];
  readonly firstAt: string;
  /** The user allowed it while it ran. */
  readonly allowed: boolean;
}

export interface Recorded {
  readonly wanted: readonly Wanted[];
  readonly runs: number;
  /** Damaged log files. */
  readonly damaged: readonly string[];
}

/** Hosts that runs of this project reached or tried to reach, and that no rule mentions yet; the most wanted first. */
export async function readRecorded(
  context: HostContext,
  project: string,
  rules: readonly NetworkRule[],
  name: string | undefined,
): Promise<Recorded> {
  const chosen = name === undefined ? listNetworkLogs(context.stateDir) : [await findLog(context, name, false)];
  const records = chosen
    .filter(({ file }) => readNetworkRun(file)?.project === project)
    .map(({ file }) => ({ file, record: readNetworkLog(file) }));
  if (name !== undefined && records.length === 0)
    throw new AgsError('task.not-found', `${visible(name)} is a task of another project.`, {
      hint: 'Go into its project first.',
    });
  const decisions = records
    .flatMap(({ record }) => record.decisions)
    .filter((one) => isCandidate(one) && !rules.some((rule) => mentions(rule, one.host, one.port)));
  return {
    wanted: summarize(decisions),
    runs: records.length,
    damaged: records.filter(({ record }) => record.brokenAt !== null).map(({ file }) => file),
  };
}

/** Grants have their own key, and a name that was only looked up was not used. */
function isCandidate({ by, host, port, unknown, verdict }: Decision): boolean {
  const isRule = !('problem' in parseRule(hostAndPort(host, port)));
  return isRule && by !== 'tcp' && by !== 'name' && (unknown === true || verdict === 'allowed');
}

function summarize(decisions: readonly Decision[]): Wanted[] {
  const groups = new Map<string, Decision[]>();
  for (const decision of decisions) {
    const key = `${decision.host} ${decision.port}`;
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [decision]);
    else group.push(decision);
  }
  return [...groups.values()]
    .flatMap((group): Wanted[] => {
      const [first] = group.toSorted((a, b) => a.at.localeCompare(b.at));
      if (first === undefined) return [];
      return [
        {
          host: first.host,
          port: first.port,
          count: group.length,
          programs: [...new Set(group.flatMap(({ program }) => (program === undefined ? [] : [program])))],
          firstAt: first.at,
          allowed: group.some(({ verdict }) => verdict === 'allowed'),
        },
      ];
    })
    .toSorted((a, b) => b.count - a.count);
}
