// cli/net/log.ts: `ags net log`: the connections a run tried, and each decision.
// Invariant: text from an agent reaches the terminal only sanitized (format.ts).
import { visible } from '../../lib/sanitize.ts';
import { EXIT } from '../../protocol/errors.ts';
import { hostAndPort } from '../../protocol/host-name.ts';
import type { Decision } from '../../protocol/network.ts';
import { followNetworkLog, readNetworkLog, type NetworkRecord } from '../../store/network-log-reader.ts';
import type { NetworkLogFile } from '../../store/network-log.ts';
import { findLog, isGoing } from '../../network/logs.ts';
import { createPaint, type Paint } from '../terminal/colour.ts';
import { count, cut, widthOf } from '../terminal/format.ts';
import type { Arguments, Context } from '../verb.ts';

export async function showLog({ values, positionals }: Arguments, ctx: Context): Promise<number> {
  const log = await findLog(ctx.host, positionals[0], values['follow'] === true);
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
    if (!isGoing(ctx.host, log)) stop.abort();
  }, 500);
  const interrupted = (): void => stop.abort();
  process.once('SIGINT', interrupted);
  try {
    const paint = createPaint(ctx.colour);
    const brokenAt = await followNetworkLog(
      log.file,
      (decision) => {
        if (wanted(decision))
          ctx.stdout.write(json ? `${JSON.stringify(decision)}\n` : lineOf(decision, paint, ctx.stdout.columns));
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
    ...decisions.map((decision) => lineOf(decision, paint, ctx.stdout.columns)),
    ...(decisions.length === 0 ? ['No connections were tried.\n'] : [summary(decisions)]),
    ...(record.lost === 0
      ? []
      : [`${count(record.lost, 'further connection was', 'further connections were')} not logged.\n`]),
    ...(record.brokenAt === null ? [] : [damage(log, record.brokenAt)]),
  ].join('');
}

function damage({ file }: NetworkLogFile, brokenAt: number): string {
  return `The log is damaged at line ${brokenAt}; the rest is not shown: ${visible(file)}\n`;
}

const STYLES = { allowed: 'green', denied: 'red', failed: 'yellow' } as const;
/** The widths of host, program, bytes and duration. */
const COLUMNS = [34, 12, 13, 7] as const;

/** The request and its program, then the reason: on the same line if the terminal is wide enough, else below. */
function lineOf(decision: Decision, paint: Paint, width = Infinity): string {
  const { at, verdict, host, port, method, path = '', program = '', reason, by } = decision;
  const place = by === 'name' ? `${host} (name)` : hostAndPort(host, port);
  const what = method === undefined ? place : `${place} ${method} ${path}`;
  const cells = [what, program, by === 'name' ? '' : traffic(decision), by === 'name' ? '' : duration(decision.ms)];
  const row = cells.map((cell, i) => fit(cell, COLUMNS[i] ?? 0)).join('  ');
  const head = `${cut(at.slice(11, 19), 8)}  ${paint(STYLES[verdict] ?? 'yellow', fit(verdict, 7))}  `;
  const indent = 19;
  const used = indent + widthOf(row) + 2;
  const why = visible(reason);
  if (used + widthOf(why) <= width) return `${head}${row}  ${paint('dim', why)}\n`;
  return `${head}${row.trimEnd()}\n${' '.repeat(indent)}${paint('dim', cut(why, Math.max(20, width - indent)))}\n`;
}

function fit(text: string, width: number): string {
  const shown = cut(text, width);
  return shown + ' '.repeat(Math.max(0, width - widthOf(shown)));
}

/** Sent and received. */
function traffic({ bytesOut, bytesIn }: Decision): string {
  return bytesOut + bytesIn === 0 ? '' : `${size(bytesOut)} > ${size(bytesIn)}`;
}

function size(bytes: number): string {
  const units = ['', 'k', 'M', 'G', 'T'];
  const step = bytes < 1000 ? 0 : Math.min(4, Math.floor(Math.log(bytes) / Math.log(1000)));
  const value = bytes / 1000 ** step;
  return `${step > 0 && value < 10 ? value.toFixed(1) : Math.round(value)}${units[step]}`;
}

function duration(ms: number): string {
  return ms < 1000 ? `${ms}ms` : ms < 120_000 ? `${(ms / 1000).toFixed(1)}s` : `${Math.round(ms / 60_000)}m`;
}

function summary(decisions: readonly Decision[]): string {
  const by = (verdict: Decision['verdict']): number => decisions.filter((one) => one.verdict === verdict).length;
  const parts = (['allowed', 'denied', 'failed'] as const).flatMap((verdict) =>
    by(verdict) === 0 ? [] : [`${by(verdict)} ${verdict}`],
  );
  const denied = decisions.find((one) => one.verdict === 'denied');
  const hint = denied === undefined ? '' : ' To allow a host: ags allow <host>';
  return `\n${parts.join(', ')}.${hint}\n`;
}
