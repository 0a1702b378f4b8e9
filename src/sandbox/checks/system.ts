// sandbox/checks/system.ts: checks the machine and the programs that build a sandbox.
import { statSync } from 'node:fs';
import { run } from '../../lib/process/process.ts';
import type { AgsError } from '../../protocol/errors.ts';
import { installCommand, programMissing } from '../programs.ts';
import { missing, note, ok, type Check, type Finding } from './check.ts';
import type { MachineFacts } from './machine-facts.ts';
import { isBefore } from './overlay-reason.ts';
import { followsPlantedLinks } from './planted-links.ts';

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
