// sandbox/checks/limits.ts: reports which limits the kernel enforces, which are watched, and which are not enforced.
import { AgsError } from '../../protocol/errors.ts';
import type { Limits } from '../../protocol/spec.ts';
import type { CgroupPlan } from '../watch/cgroup-plan.ts';
import { limitsInForce, type LimitInForce } from '../watch/limits.ts';
import { note, ok, type Check, type Finding } from './check.ts';
import type { MachineFacts } from './machine-facts.ts';

const NAMES: Readonly<Record<keyof Limits, string>> = {
  processes: 'processes',
  memoryBytes: 'memory',
  openFiles: 'openFiles',
  fileBytes: 'fileSize',
  diskBytes: 'disk',
  tmpBytes: 'tmp',
  cpuSeconds: 'cpu',
  wallSeconds: 'time',
  cpus: 'cpus',
};

export const LIMIT_CHECKS: readonly Check<MachineFacts>[] = (Object.keys(NAMES) as (keyof Limits)[]).map((name) => ({
  id: `limit-${NAMES[name]}`,
  group: 'Limits',
  async run({ host, limits }) {
    const found = await host;
    if (found instanceof AgsError) return null;
    const limit = limitsInForce(await limits, found.limitHost).find((one) => one.name === name);
    return limit === undefined ? null : describe(limit, found.cgroupPlan);
  },
}));

// Disk and time are watched everywhere, and a limit that the configuration leaves open is no fault of the machine.
function describe(limit: LimitInForce, cgroup: CgroupPlan): Finding {
  const name = NAMES[limit.name];
  if (limit.held === 'kernel') return ok(`${name}: ${limit.means} (held by the kernel)`);
  if (limit.allowed === null) return ok(`${name}: ${limit.means} (limits.${name})`);
  if (limit.name === 'diskBytes' || limit.name === 'wallSeconds') return ok(`${name}: ${limit.means} (watched)`);
  const how = limit.held === 'watched' ? 'watched, not held by the kernel' : 'not enforced';
  return note(
    `${name}: ${limit.means} (${how})`,
    cgroup.kind === 'none' && /v1/.test(cgroup.why)
      ? 'Boot with cgroup v2: add systemd.unified_cgroup_hierarchy=1 to the kernel command line'
      : 'Start ags in a login session of systemd, which can enforce it: systemd-run --user --scope true',
  );
}
