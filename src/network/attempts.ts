// network/attempts.ts: the hosts that runs tried to reach: how often, the last decision, and how many bytes.
import type { Decision } from '../protocol/network.ts';
import { readNetworkLog, readNetworkRun } from '../store/network-log-reader.ts';
import { listNetworkLogs } from '../store/network-log.ts';
import type { HostContext } from '../run/host-context.ts';

export interface Attempt {
  readonly host: string;
  readonly port: number;
  readonly verdict: 'allowed' | 'denied';
  readonly why: string;
  readonly program: string | null;
  readonly task: string;
  readonly tries: number;
  readonly lastAtMs: number;
  readonly bytesIn: number;
  readonly bytesOut: number;
}

/** Keyed by task, host and port. A name that was only looked up counts if the lookup was refused. */
export type AttemptTable = Map<string, Attempt>;

/** Returns the updated attempt; null: the decision does not count as one. */
export function countDecision(table: AttemptTable, task: string, decision: Decision): Attempt | null {
  const verdict = decision.verdict === 'denied' ? 'denied' : 'allowed';
  if (decision.by === 'name' && verdict === 'allowed') return null;
  const key = `${task} ${decision.host} ${decision.port}`;
  const before = table.get(key);
  if (before === undefined && table.size >= MAX_ATTEMPTS) return null;
  const now: Attempt = {
    host: decision.host,
    port: decision.port,
    verdict,
    why: decision.reason,
    program: decision.program ?? before?.program ?? null,
    task,
    tries: (before?.tries ?? 0) + 1,
    lastAtMs: Date.parse(decision.at),
    bytesIn: (before?.bytesIn ?? 0) + decision.bytesIn,
    bytesOut: (before?.bytesOut ?? 0) + decision.bytesOut,
  };
  table.set(key, now);
  return now;
}

/** A program inside can invent any number of names. */
const MAX_ATTEMPTS = 5000;

/** The attempts of one project's runs, or of one task; the latest first. */
export function readAttempts(context: HostContext, of: { project?: string; task?: string }): Attempt[] {
  const table: AttemptTable = new Map();
  const logs = listNetworkLogs(context.stateDir).filter(({ task, file }) =>
    of.task === undefined ? of.project === undefined || readNetworkRun(file)?.project === of.project : task === of.task,
  );
  // Reads the latest logs, oldest first.
  for (const { task, file } of logs.slice(0, MAX_LOGS).toReversed())
    for (const decision of readNetworkLog(file).decisions) countDecision(table, task, decision);
  return [...table.values()].toSorted((a, b) => b.lastAtMs - a.lastAtMs);
}

const MAX_LOGS = 200;
