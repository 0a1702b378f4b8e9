// bench/gateway/figures.mjs: converts client reports into the figures of tables and bars.
import { ratio, spread, summary } from '../stats.mjs';

export const perSecond = (runs) => runs.map((run) => run.count / run.seconds);
export const cpuEach = (runs) => runs.map((run) => run.cpuUs / run.count);
export const megabytes = (runs) => runs.map((run) => run.bytes / run.seconds / 1e6);
export const cpuPerGb = (runs) => runs.map((run) => (run.cpuUs * 1000) / run.bytes);
export const p50 = (runs) => runs.map((run) => run.p50);
export const p99 = (runs) => runs.map((run) => run.p99);
export const of = (values, unit) => spread(summary(values), unit);
export const times = (ours, theirs) => `${spread(ratio(ours, theirs))} ×`;
