// network/rotating-log.ts: the decision log of a gateway that runs for months: one current file, older ones beside it.
// Invariant: a rotated file is never changed or lost; each is a hash chain of its own from its first line to its last.
import { existsSync, renameSync, statSync } from 'node:fs';
import type { Decision } from '../protocol/network.ts';
import { openNetworkLog, type NetworkLog } from '../store/network-log.ts';

/** About 50 MB; a single log takes at most 64 MB. */
const MOST_LINES = 150_000;

export function openRotatingLog(file: string, project: string, now: () => Date): Pick<NetworkLog, 'append' | 'close'> {
  let lines = 0;
  let log = begin();
  function begin(): NetworkLog {
    setAside(file);
    lines = 0;
    return openNetworkLog(file, { task: 'gateway', project, startedAt: now().toISOString() });
  }
  return {
    append(decision: Decision) {
      if (++lines > MOST_LINES) {
        log.close();
        log = begin();
      }
      log.append(decision);
    },
    close: () => log.close(),
  };
}

function setAside(file: string): void {
  if (!existsSync(file)) return;
  const stamp = statSync(file)
    .mtime.toISOString()
    .replaceAll(/[-:]|\.\d+/g, '');
  let to = `${file}.${stamp}`;
  for (let n = 1; existsSync(to); n++) to = `${file}.${stamp}-${n}`;
  renameSync(file, to);
}
