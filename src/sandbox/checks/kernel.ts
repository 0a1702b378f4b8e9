// sandbox/checks/kernel.ts: checks what the kernel allows, and whether a complete sandbox starts with all protections.
import { AgsError } from '../../protocol/errors.ts';
import { run } from '../../lib/process/process.ts';
import { missing, note, ok, type Check, type Finding } from './check.ts';
import { apparmor, explainFailure, type FailureContext } from './failure.ts';
import type { MachineFacts } from './machine-facts.ts';
import { overlayFix } from './overlay-reason.ts';
import { sentence } from './system.ts';

const KERNEL = 'Kernel';
const SANDBOX = 'Sandbox';

export const KERNEL_CHECKS: readonly Check<MachineFacts>[] = [
  {
    id: 'user-namespaces',
    group: KERNEL,
    async run(facts) {
      const tried = await facts.trial;
      if (tried?.problem?.cause === 'namespaces') return missing(tried.problem.message, tried.problem.hint);
      const { maxUserNamespaces: most, unprivilegedUserns } = facts.kernelFacts;
      // Without a trial the kernel settings decide.
      if (tried === null && (most === 0 || unprivilegedUserns === 0))
        return refusal('No permissions to create a new namespace', facts);
      return ok(`User namespaces are allowed${most === null || most >= 2 ** 31 - 1 ? '' : ` (${most} at most)`}`);
    },
  },
  {
    id: 'apparmor',
    group: KERNEL,
    async run(facts) {
      if (!facts.kernelFacts.apparmorRestricts) return ok('AppArmor does not restrict user namespaces');
      const tried = await facts.trial;
      if (tried !== null && tried.problem === null)
        return ok('AppArmor restricts user namespaces, and a profile allows what ags needs');
      if (tried?.problem?.cause === 'apparmor') return missing(tried.problem.message, tried.problem.hint);
      return note(
        'AppArmor restricts user namespaces (kernel.apparmor_restrict_unprivileged_userns is 1); ags may need a profile.',
        apparmor(contextOf(facts)).hint,
      );
    },
  },
  {
    id: 'seccomp',
    group: KERNEL,
    run: (facts) =>
      ['errno', 'kill_process'].every((action) => facts.kernelFacts.seccompActions.includes(action))
        ? ok('System calls can be filtered (seccomp)')
        : refusal('PR_SET_SECCOMP', facts),
  },
  {
    id: 'tiocsti',
    group: KERNEL,
    run({ kernelFacts }) {
      const own = 'a sandbox has a terminal of its own either way';
      if (kernelFacts.tiocsti === 1)
        return note(
          `Programs may type into the terminal they run in (TIOCSTI); ${own}.`,
          'Run: sudo sysctl -w dev.tty.legacy_tiocsti=0',
        );
      return ok(
        kernelFacts.tiocsti === 0
          ? 'Programs cannot type into the terminal they run in (TIOCSTI)'
          : `This kernel has no switch for TIOCSTI; ${own}`,
      );
    },
  },
  {
    id: 'landlock',
    group: KERNEL,
    async run({ find, kernelFacts }) {
      const perl = find('perl');
      // landlock_create_ruleset(NULL, 0, LANDLOCK_CREATE_RULESET_VERSION); the number is the same on every architecture.
      const asked =
        perl === null ? null : await run([perl, '-e', 'print syscall(444, 0, 0, 1)'], { env: {}, timeoutMs: 2000 });
      const abi = Number(asked?.stdout.toString('latin1') ?? 'NaN');
      if (abi > 0) return ok(`Landlock is available (ABI ${abi}); not needed yet`);
      if (Number.isNaN(abi) && kernelFacts.securityModules.includes('landlock'))
        return ok('Landlock is available; not needed yet');
      return ok('Landlock is not available; not needed yet');
    },
  },
  {
    id: 'overlay',
    group: SANDBOX,
    async run(facts) {
      const tried = await facts.trial;
      if (tried === null || tried.problem !== null) return null;
      if (tried.overlay.works)
        return ok('Workspaces are copy-on-write (overlay): ready at once, whatever the size of the project');
      const { why } = tried.overlay;
      const profile = facts.kernelFacts.apparmorRestricts && why.includes('unshare');
      const fix = profile ? apparmor(contextOf(facts)).hint : overlayFix({ said: why });
      return note(`Workspaces are full copies, because ${why}.`, fix);
    },
  },
  {
    id: 'id-mapped-mounts',
    group: SANDBOX,
    async run({ uid, trial }) {
      const tried = await trial;
      if (uid !== 0 || tried === null) return null;
      if (tried.problem?.cause === 'id-map') return missing(tried.problem.message, tried.problem.hint);
      return tried.problem === null
        ? ok('You are root: inside, your files belong to the sandbox user, who is never root (ID-mapped mounts)')
        : null;
    },
  },
  {
    id: 'sandbox',
    group: SANDBOX,
    async run({ host, trial }) {
      const found = await host;
      if (found instanceof AgsError) return sentence(found);
      const tried = await trial;
      if (tried === null) return null;
      if (tried.problem !== null) return missing(tried.problem.message, tried.problem.hint);
      return ok(`A complete sandbox started in ${Math.round(tried.startMs)} ms, with every protection in force`);
    },
  },
];

/** The finding for a message that a program would print here. */
function refusal(said: string, facts: MachineFacts): Finding {
  const { message, hint } = explainFailure(said, contextOf(facts));
  return missing(message, hint);
}

function contextOf({ kernelFacts, find }: MachineFacts): FailureContext {
  return {
    facts: kernelFacts,
    programs: { bwrap: find('bwrap') ?? '/usr/bin/bwrap', unshare: find('unshare') ?? '/usr/bin/unshare' },
  };
}
