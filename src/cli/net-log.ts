// cli/net-log.ts: `ags net log`: what a run tried to reach, and what was decided.
// Invariant: nothing that an agent sent gets to the terminal as it came (format.ts).
import { visible } from '../lib/sanitize.ts';
import { EXIT } from '../protocol/errors.ts';
import { hostAndPort } from '../protocol/host-name.ts';
import type { Decision } from '../protocol/network.ts';
import { followNetworkLog, readNetworkLog, type NetworkRecord } from '../store/network-log-reader.ts';
import type { NetworkLogFile } from '../store/network-log.ts';
import { findLog, isGoing } from '../tasks/network-logs.ts';
import { createPaint, type Paint } from './colour.ts';
import { count, cut, widthOf } from './format.ts';
import type { Arguments, Context } from './verb.ts';

export async function showLog({ values, positionals }: Arguments, ctx: Context): Promise<number> {
  const log = await findLog(ctx.world, positionals[0], values['follow'] === true);
  const wanted = (decision: Decision): boolean => values['denied'] !== true || decision.verdict !== 'allowed';
  const json = values['json'] === true;
  if (values['follow'] === true) return follow(log, wanted, json, ctx);
  const record = readNetworkLog(log.file);
  const decisions = record.decisions.filter(wanted);
  ctx.stdout.write(
    json ? `${JSON.stringify({ ...record, decisions }, null, 2)}\n` : logText(log, record, decisions, ctx),
  );
  return record.brokenAt === null ? EXIT.done : EXIT.failed;
}

async function follow(
  log: NetworkLogFile,
  wanted: (decision: Decision) => boolean,
  json: boolean,
  ctx: Context,
): Promise<number> {
  const stop = new AbortController();
  const watch = setInterval(() => {
    if (!isGoing(ctx.world, log)) stop.abort();
  }, 500);
  const interrupted = (): void => stop.abort();
  process.once('SIGINT', interrupted);
  try {
    const paint = createPaint(ctx.colour);
    const brokenAt = await followNetworkLog(
      log.file,
      (decision) => {
        if (wanted(decision)) ctx.stdout.write(json ? `${JSON.stringify(decision)}\n` : lineOf(decision, paint));
      },
      stop.signal,
    );
    if (brokenAt === null) return EXIT.done;
    ctx.stderr.write(damage(log, brokenAt));
    return EXIT.failed;
  } finally {
    clearInterval(watch);
    process.off('SIGINT', interrupted);
  }
}

function logText(log: NetworkLogFile, record: NetworkRecord, decisions: readonly Decision[], ctx: Context): string {
  const paint = createPaint(ctx.colour);
  const day = new Date(log.startedAtMs).toISOString().slice(0, 10);
  return [
    `${paint('bold', log.task)}, ${day}\n`,
    ...decisions.map((decision) => lineOf(decision, paint)),
    ...(decisions.length === 0 ? ['Nothing was tried.\n'] : [summary(decisions)]),
    ...(record.lost === 0
      ? []
      : [`${count(record.lost, 'further try was', 'further tries were')} not written down.\n`]),
    ...(record.brokenAt === null ? [] : [damage(log, record.brokenAt)]),
  ].join('');
}

function damage({ file }: NetworkLogFile, brokenAt: number): string {
  return `The log is damaged at line ${brokenAt}; what follows is left out: ${visible(file)}\n`;
}

const WIDTH = 80;
const STYLES = { allowed: 'green', denied: 'red', failed: 'yellow' } as const;

/** Time, verdict, host, and as much of the reason as fits. */
function lineOf(decision: Decision, paint: Paint): string {
  const time = decision.at.slice(11, 19);
  const verdict = decision.verdict.padEnd(7);
  const request = decision.method === undefined ? '' : ` ${decision.method} ${decision.path ?? ''}`;
  const what = cut(`${hostAndPort(decision.host, decision.port)}${request}`, 36);
  const why = `${decision.reason}${decision.program === undefined ? '' : `, ${decision.program}`}`;
  const used = time.length + verdict.length + Math.max(36, widthOf(what)) + 6;
  const fill = ' '.repeat(Math.max(0, 36 - widthOf(what)));
  return `${cut(time, 8)}  ${paint(STYLES[decision.verdict] ?? 'yellow', cut(verdict, 7))}  ${what}${fill}  ${cut(why, WIDTH - used)}\n`;
}

function summary(decisions: readonly Decision[]): string {
  const by = (verdict: Decision['verdict']): number => decisions.filter((one) => one.verdict === verdict).length;
  const parts = (['allowed', 'denied', 'failed'] as const).flatMap((verdict) =>
    by(verdict) === 0 ? [] : [`${by(verdict)} ${verdict}`],
  );
  const denied = decisions.find((one) => one.verdict === 'denied');
  const hint = denied === undefined ? '' : ' To let a host through: ags allow <host>';
  return `\n${parts.join(', ')}.${hint}\n`;
}
