// transfer/import-history.ts: writes the events and network decisions of an imported task, with new numbers, a new chain and its name here.
// Invariant: it keeps only events that ags itself writes, with their known fields; it counts and drops all else.
import { AgsError } from '../protocol/errors.ts';
import { readCarriedEvent, type CarriedEvent } from '../protocol/carried-event.ts';
import { CarriedDecision, EXPORT_LIMITS, MEMBERS } from '../protocol/export.ts';
import type { Decision } from '../protocol/network.ts';
import { openEvents } from '../store/events.ts';
import { openNetworkLog, type NetworkRun } from '../store/network-log.ts';
import { refusedFile, type ExportFile } from './import-read.ts';
import type { Rewrite } from './portable-text.ts';

/** Appends `last` after the imported events. */
export async function takeEvents(
  file: ExportFile,
  to: { file: string; task: string },
  here: Rewrite,
  last: (dropped: number) => CarriedEvent,
): Promise<void> {
  let now = new Date(0);
  let dropped = 0;
  using log = openEvents(to.file, to.task, () => now);
  const put = ({ at, ...event }: CarriedEvent): void => {
    now = new Date(at);
    log.append(event);
  };
  await file.lines(MEMBERS.events, EXPORT_LIMITS.eventBytes, (line) => {
    const event = readCarriedEvent(parse(line));
    if (event !== null) return put(here(event));
    dropped += 1;
    requireFew(dropped);
  });
  put(last(dropped));
  log.sync();
}

/** Creates no log if there are no decisions. */
export async function takeDecisions(
  file: ExportFile,
  to: { file: string; run: NetworkRun },
  here: Rewrite,
): Promise<void> {
  const log = openNetworkLog(to.file, to.run);
  let dropped = 0;
  try {
    await file.lines(MEMBERS.network, EXPORT_LIMITS.networkBytes, (line) => {
      const decision = CarriedDecision.safeParse(parse(line));
      if (decision.success) return log.append({ ...here(decision.data), run: to.run.task } as Decision);
      dropped += 1;
      requireFew(dropped);
    });
  } finally {
    log.close();
  }
  const trouble = log.trouble();
  if (trouble !== null)
    throw new AgsError('disk.full', `The log of the network could not be written (${trouble}).`, {
      hint: 'Free some space, then try again. Nothing was imported.',
    });
}

/** A newer ags may have written some events that this one does not know, but not millions of empty lines. */
function requireFew(dropped: number): void {
  if (dropped > 10_000) throw refusedFile('its history has too many lines that cannot be read');
}

function parse(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return null;
  }
}
