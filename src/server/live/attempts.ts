// server/live/attempts.ts: the topics `network:<task>`: connection attempts of tasks, live. A log is read only while its topic has subscribers.
import { listNetworkLogs, type NetworkLogFile } from '../../store/network-log.ts';
import { createNetworkReader, type NetworkFollower } from '../../store/network-log-reader.ts';
import { countDecision, type AttemptTable } from '../../network/attempts.ts';
import type { HostContext } from '../../run/host-context.ts';
import { createRecent, type Recent, type Subscribers, type Source } from './subscribers.ts';

export interface Attempts {
  source(task: string): Source;
  /** Reads new lines of the logs whose topics have subscribers. */
  look(): void;
}

interface Followed {
  readonly recent: Recent;
  readonly table: AttemptTable;
  file: string | null;
  reader: NetworkFollower | null;
}

export function createAttempts(context: HostContext, start: number, subscribers: Subscribers): Attempts {
  const followed = new Map<string, Followed>();

  function readOn(task: string, one: Followed, logs: readonly NetworkLogFile[]): void {
    const latest = logs.find((log) => log.task === task)?.file ?? null;
    if (latest !== one.file) {
      one.reader?.close();
      one.file = latest;
      one.reader =
        latest === null
          ? null
          : createNetworkReader(latest, (decision) => {
              const attempt = countDecision(one.table, task, decision);
              if (attempt !== null)
                subscribers.publish(one.recent.add({ topic: `network:${task}`, type: 'attempt', data: attempt }));
            });
    }
    one.reader?.readOn();
  }

  return {
    source(task) {
      const there = followed.get(task);
      if (there !== undefined) return there.recent;
      const one: Followed = { recent: createRecent(start), table: new Map(), file: null, reader: null };
      followed.set(task, one);
      readOn(task, one, listNetworkLogs(context.stateDir));
      return one.recent;
    },
    look() {
      if (followed.size === 0) return;
      const logs = listNetworkLogs(context.stateDir);
      for (const [task, one] of followed) {
        if (subscribers.has(`network:${task}`)) readOn(task, one, logs);
        else {
          one.reader?.close();
          followed.delete(task);
        }
      }
    },
  };
}
