// server/live/attempts.ts: what tasks try to reach, live: the topics `network:<task>`. A log is followed while somebody listens.
import { listNetworkLogs, type NetworkLogFile } from '../../store/network-log.ts';
import { createNetworkReader, type NetworkFollower } from '../../store/network-log-reader.ts';
import { countDecision, type AttemptTable } from '../../network/attempts.ts';
import type { World } from '../../run/host-context.ts';
import type { Peers, Source } from './subscribers.ts';
import { createRecent, type Recent } from './recent.ts';

export interface Attempts {
  source(task: string): Source;
  /** Reads on in the logs that somebody listens to. */
  look(): void;
}

interface Followed {
  readonly recent: Recent;
  readonly table: AttemptTable;
  file: string | null;
  reader: NetworkFollower | null;
}

export function createAttempts(world: World, start: number, peers: Peers): Attempts {
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
                peers.publish(one.recent.add({ topic: `network:${task}`, type: 'attempt', data: attempt }));
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
      readOn(task, one, listNetworkLogs(world.stateDir));
      return one.recent;
    },
    look() {
      if (followed.size === 0) return;
      const logs = listNetworkLogs(world.stateDir);
      for (const [task, one] of followed) {
        if (peers.has(`network:${task}`)) readOn(task, one, logs);
        else {
          one.reader?.close();
          followed.delete(task);
        }
      }
    },
  };
}
