// sandbox/checks/system.ts: checks the machine, the programs that build a sandbox, and how each limit is enforced.
import { statSync, existsSync, mkdirSync, mkdtempSync, realpathSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { run } from '../../lib/process/process.ts';
import { AgsError } from '../../protocol/errors.ts';
import { installCommand, programMissing } from '../programs.ts';
import { missing, note, ok, type Check, type Finding } from './check.ts';
import type { MachineFacts } from './machine-facts.ts';
import { isBefore } from './overlay-reason.ts';
import type { Limits } from '../../protocol/spec.ts';
import type { CgroupPlan } from '../watch/cgroup-plan.ts';
import { limitsInForce, type LimitInForce } from '../watch/limits.ts';
import { removeTree } from '../../lib/files.ts';
import { readMachine } from '../spec/machine.ts';

const GROUP = 'System';
const NEWER_KERNEL = 'Boot a newer kernel, such as the current one of your distribution';

export const SYSTEM_CHECKS: readonly Check<MachineFacts>[] = [
  {
    id: 'linux',
    group: GROUP,
    run({ platform, kernel }) {
      if (platform !== 'linux')
        return missing(
          `The native sandbox needs Linux; this is ${platform}.`,
          'Run ags on Linux: in a virtual machine, or in WSL 2',
        );
      if (isBefore(kernel, 5, 8))
        return missing(`Linux ${kernel} is too old: 5.8 is needed, 5.14 recommended.`, NEWER_KERNEL);
      if (isBefore(kernel, 5, 14))
        return note(
          `Linux ${kernel}: before 5.14 the processes of a sandbox cannot be counted separately from yours.`,
          NEWER_KERNEL,
        );
      return ok(`Linux ${kernel}`);
    },
  },
  {
    id: 'architecture',
    group: GROUP,
    run: ({ nodeArch }) =>
      nodeArch === 'x64' || nodeArch === 'arm64'
        ? ok(`${nodeArch === 'x64' ? 'x86_64' : 'arm64'}, with a system call filter for it`)
        : missing(`There is no system call filter for ${nodeArch}.`, 'Use a machine with x86_64 or arm64'),
  },
  {
    id: 'node',
    group: GROUP,
    run: ({ nodeVersion }) =>
      isBefore(nodeVersion, 20, 19)
        ? missing(
            `Node ${nodeVersion} is too old: 20.19 or newer is needed.`,
            'Install a newer one, for example: nvm install --lts',
          )
        : ok(`Node ${nodeVersion}`),
  },
  {
    id: 'bubblewrap',
    group: GROUP,
    async run({ find }) {
      const bwrap = find('bwrap');
      if (bwrap === null) return sentence(programMissing(['bwrap']));
      const said = await run([bwrap, '--version'], { env: {}, timeoutMs: 5000 });
      const version = /(\d+\.\d+(\.\d+)?)/.exec(said.stdout.toString('utf8'))?.[1];
      const fix = `Install: ${installCommand(['bubblewrap'])}`;
      if (version === undefined) return missing(`${bwrap} does not report its version.`, fix);
      if (isBefore(version, 0, 8))
        return missing(`bubblewrap ${version} (${bwrap}) is too old: 0.8 or newer is needed.`, fix);
      if ((statSync(bwrap).mode & 0o4000) !== 0)
        return note(
          `bubblewrap ${version} (${bwrap}) is installed setuid root, which ags does not need.`,
          `Run: sudo chmod u-s ${bwrap}`,
        );
      return ok(`bubblewrap ${version} (${bwrap})`);
    },
  },
  {
    id: 'bubblewrap-links',
    group: GROUP,
    // Runs after the trial, which creates the state directory.
    async run({ find, stateDir, trial }) {
      const bwrap = find('bwrap');
      const started = await trial;
      if (bwrap === null || started === null || started.problem !== null) return null;
      const answer = await followsPlantedLinks(bwrap, stateDir);
      if (answer === 'unknown') return null;
      if (answer === 'refuses') return ok('bubblewrap does not follow planted links (CVE-2026-87766)');
      return note(
        'This bubblewrap follows planted links (CVE-2026-87766). ags never mounts below a directory an agent could have prepared, so it is not exposed; upgrade anyway.',
        `Upgrade, once your distribution has a fixed one: ${installCommand(['bubblewrap'])}`,
      );
    },
  },
  {
    id: 'programs',
    group: GROUP,
    run({ find }) {
      const names = ['perl', 'unshare', 'setsid', 'prlimit'];
      const absent = names.filter((name) => find(name) === null);
      return absent.length > 0 ? sentence(programMissing(absent)) : ok(names.join(', '));
    },
  },
];

/** A finding with the message of the error with which `ags exec` would end. */
export function sentence(error: AgsError): Finding {
  return missing(error.message, error.hint ?? 'See: ags doctor --json');
}

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

/**
 * Tests whether this bubblewrap follows links that an agent could have planted (CVE-2026-87766). Older releases follow links into the old
 * root when they create mount points, and so write outside the sandbox. The trial plays both sides in its own directory and can reach
 * nothing else.
 */
export async function followsPlantedLinks(bwrap: string, stateDir: string): Promise<'follows' | 'refuses' | 'unknown'> {
  const dir = realpathSync(mkdtempSync(join(stateDir, 'probe-')));
  try {
    const [home, victim] = [join(dir, 'home'), join(dir, 'victim')];
    for (const made of [home, victim]) mkdirSync(made);
    symlinkSync(`/oldroot${victim}`, join(home, '.config'));
    const system = readMachine({ home, etc: [], toolDirs: [] }).system.flatMap(({ path, link }) =>
      link === null ? ['--ro-bind', path, path] : ['--symlink', link, path],
    );
    const tried = await run(
      [
        bwrap,
        '--unshare-user',
        '--unshare-pid',
        '--unshare-net',
        ...system,
        '--bind',
        home,
        '/h',
        '--dir',
        '/h/.config/planted',
        '--',
        '/bin/true',
      ],
      { env: { PATH: '/usr/bin:/bin' }, timeoutMs: 5000 },
    );
    if (existsSync(join(victim, 'planted'))) return 'follows';
    // A fixed bubblewrap stops at the link or keeps it inside; one that cannot start at all proves nothing.
    return tried.exitCode === 0 || /\.config|symlink|planted/i.test(tried.stderr) ? 'refuses' : 'unknown';
  } finally {
    removeTree(dir);
  }
}
