// sandbox/checks/failure.ts: explains error messages of unshare, mount, perl and bwrap in one plain sentence and one command.
// Invariant: every failure gets a sentence. An unknown message is shown as it is, never hidden behind a guess.
import { basename, dirname } from 'node:path';
import { visible } from '../../lib/sanitize.ts';
import { installCommand } from '../programs.ts';
import type { KernelFacts } from './kernel-facts.ts';

type Cause =
  | 'namespaces'
  | 'apparmor'
  | 'proc'
  | 'pivot-root'
  | 'bwrap-old'
  | 'bwrap-setuid'
  | 'seccomp'
  | 'capabilities'
  | 'parents'
  | 'id-map'
  | 'cgroup'
  | 'invisible'
  | 'limits'
  | 'exhausted'
  | 'unprotected'
  | 'veil'
  | 'state'
  | 'unknown';

export interface Problem {
  readonly cause: Cause;
  readonly message: string;
  readonly hint: string;
}

export interface FailureContext {
  readonly facts: KernelFacts;
  readonly programs: { readonly bwrap: string; readonly unshare: string };
}

export function explainFailure(stderr: string, context: FailureContext): Problem {
  for (const { seen, explain } of CAUSES) {
    const match = seen.exec(stderr);
    if (match !== null) return explain(context, match);
  }
  const line = lastLine(stderr);
  return {
    cause: 'unknown',
    message: `A test sandbox could not be started${line === '' ? '.' : `: ${line}`}`,
    hint: `Try bubblewrap by itself: ${context.programs.bwrap} --unshare-user --unshare-net --ro-bind / / true`,
  };
}

export function engineFailed(said: string, engine: string): Problem {
  const line = lastLine(said);
  return {
    cause: 'unknown',
    message: `A test sandbox could not be started${line === '' ? '.' : `: ${line}`}`,
    hint: `See the state of the engine: ${engine} info. Or use: --backend native`,
  };
}

/** `lacking`: parts of a sentence about the sandbox, "it ..."; `builder`: the program that built it. */
export function unprotected(lacking: readonly string[], builder: string): Problem {
  const again = basename(builder) === 'bwrap' ? `: ${installCommand(['bubblewrap'])}` : ', or use: --backend native';
  return {
    cause: 'unprotected',
    message: `A test sandbox started, but not with every protection in force: ${lacking.join('; ')}.`,
    hint: `Is ${builder} the one of your system? Remove it and install it again${again}`,
  };
}

/** The last line that a failed program printed, safe to show. */
export function lastLine(stderr: string): string {
  return visible(
    stderr
      .trim()
      .split('\n')
      .findLast((line) => line.trim() !== '' && !/^\s*dmesg\(1\)/.test(line))
      ?.trim() ?? '',
  );
}

/** The launcher's message for a directory that it could not mount through an overlay. */
export const UNVEILED = /ags: (.+) cannot lie under an overlay/;

// Ordered: more specific messages come first.
const CAUSES: readonly {
  readonly seen: RegExp;
  readonly explain: (context: FailureContext, match: RegExpExecArray) => Problem;
}[] = [
  {
    seen: UNVEILED,
    explain: (_, [, path = '']) => ({
      cause: 'veil',
      message: `${visible(path)} cannot be mounted through an overlay, so a sandbox could connect to the sockets in it.`,
      hint: `If that is safe, mount it directly: ags exec --mount ${visible(path)}, or "mounts" in your configuration`,
    }),
  },
  {
    seen: /max_\*_namespaces exceeded|unshare failed: No space left on device|make a user namespace: No space left/,
    explain: tooManyNamespaces,
  },
  {
    seen: /No permissions to create a new namespace|unshare failed: (Operation not permitted|Permission denied)|make a user namespace/,
    explain: namespacesRefused,
  },
  {
    seen: /does not support user namespaces|unshare failed: (Invalid argument|Function not implemented)/,
    explain: () => ({
      cause: 'namespaces',
      message: 'This kernel is built without user namespaces, which every sandbox needs.',
      hint: 'Boot a kernel with CONFIG_USER_NS=y; see: zgrep USER_NS /proc/config.gz /boot/config-$(uname -r)',
    }),
  },
  {
    seen: /setting up [ug]id map|uid_map|gid_map|\/proc\/self\/setgroups|RTM_NEWADDR|RTM_NEWLINK|Failed to make \/ slave/,
    explain: namespacesPowerless,
  },
  {
    seen: /Can't mount proc on/,
    explain: () => ({
      cause: 'proc',
      message: 'This container hides parts of /proc, so a sandbox inside it cannot have a /proc of its own.',
      hint: 'Start the container with: --security-opt systempaths=unconfined (Podman: --security-opt unmask=ALL)',
    }),
  },
  {
    seen: /pivot_root/,
    explain: () => ({
      cause: 'pivot-root',
      message:
        'The system call filter of this container forbids pivot_root, without which a sandbox cannot leave the old root.',
      hint: 'Start the container with: --security-opt seccomp=unconfined --security-opt systempaths=unconfined',
    }),
  },
  {
    seen: /Unknown option (--[a-z-]+)/,
    explain: ({ programs }, [, option]) => ({
      cause: 'bwrap-old',
      message: `${programs.bwrap} does not know ${option}: bubblewrap 0.8 or newer is needed.`,
      hint: `Install: ${installCommand(['bubblewrap'])}`,
    }),
  },
  {
    seen: /PR_SET_SECCOMP|system call filtering/,
    explain: () => ({
      cause: 'seccomp',
      message: 'This kernel cannot filter system calls (seccomp), which every sandbox needs.',
      hint: 'Boot a kernel with CONFIG_SECCOMP_FILTER=y; see: cat /proc/sys/kernel/seccomp/actions_avail',
    }),
  },
  {
    seen: /setuid mode/,
    explain: ({ programs }) => ({
      cause: 'bwrap-setuid',
      message: `${programs.bwrap} is installed setuid root; ags needs it without.`,
      hint: `Run: sudo chmod u-s ${programs.bwrap}`,
    }),
  },
  {
    seen: /Unexpected capabilities but not setuid/,
    explain: () => ({
      cause: 'capabilities',
      message: 'ags was started with capabilities, and bubblewrap refuses to run with them.',
      hint: 'Start it without them: setpriv --inh-caps=-all --ambient-caps=-all ags doctor',
    }),
  },
  {
    seen: /Can't mkdir parents for (\S+): Permission denied/,
    explain: (_, [, path = '']) => ({
      cause: 'parents',
      message: `You cannot read a directory above ${visible(path)}, which bubblewrap needs.`,
      hint: `See which: namei -l ${visible(dirname(path))}`,
    }),
  },
  { seen: /map the owner of (.+?): (.+)/, explain: notMapped },
  {
    seen: /(?:enter|cannot create) (\S+cgroup\S+): (.+)/,
    explain: (_, [, file = '', why = '']) => ({
      cause: 'cgroup',
      message: `A sandbox cannot enter its control group (${visible(file)}: ${visible(why)}).`,
      hint: 'Remove leftovers of earlier runs: ags cleanup',
    }),
  },
  {
    // Printed by the shell in front of the command, or by bwrap itself.
    seen: /exec(?:vp|:) (\S+): (.+)/,
    explain: (_, [, path = '', why = '']) => ({
      cause: 'invisible',
      message: `${visible(path)} cannot be started inside a sandbox (${why === 'not found' ? 'No such file or directory' : visible(why)}): only the directories of the system are visible there.`,
      hint: `Install: ${installCommand(['util-linux'])}`,
    }),
  },
  {
    seen: /^prlimit: (.+)/m,
    explain: (_, [, why = '']) => ({
      cause: 'limits',
      message: `The limits of a sandbox cannot be set: ${visible(why)}.`,
      hint: 'See what may be set here: ulimit -Ha',
    }),
  },
  {
    seen: /Resource temporarily unavailable|Cannot allocate memory|Cannot fork|Too many open files/,
    explain: (_, [what = '']) => ({
      cause: 'exhausted',
      message: `This machine has no resources left to start a sandbox (${what.toLowerCase()}).`,
      hint: 'See what is running, and end some of it: ps -u $(id -un) --sort=-rss | head',
    }),
  },
];

function tooManyNamespaces({ facts }: FailureContext): Problem {
  const max = facts.maxUserNamespaces;
  if (max === 0) return switchedOff('user.max_user_namespaces is 0', 'user.max_user_namespaces=15000');
  // At its maximum this limit was not reached; a limit of an enclosing container was.
  if (max === null || max >= 2 ** 31 - 1) {
    return {
      cause: 'namespaces',
      message: 'The container around ags allows no further user namespaces.',
      hint: 'Raise its limit, outside of it: sudo sysctl -w user.max_user_namespaces=15000',
    };
  }
  return {
    cause: 'namespaces',
    message: `All ${max} user namespaces that this machine allows are in use (user.max_user_namespaces).`,
    hint: `Run: sudo sysctl -w user.max_user_namespaces=${max * 2}`,
  };
}

function namespacesRefused(context: FailureContext): Problem {
  const { facts } = context;
  if (facts.maxUserNamespaces === 0) return tooManyNamespaces(context);
  if (facts.unprivilegedUserns === 0)
    return switchedOff('kernel.unprivileged_userns_clone is 0', 'kernel.unprivileged_userns_clone=1');
  if (facts.container) {
    return {
      cause: 'namespaces',
      message: 'The container around ags does not allow user namespaces, which every sandbox needs.',
      hint: 'Start the container with: --security-opt seccomp=unconfined --security-opt systempaths=unconfined',
    };
  }
  if (facts.apparmorRestricts) return apparmor(context);
  return {
    cause: 'namespaces',
    message: 'This machine does not allow you to create user namespaces, which every sandbox needs.',
    hint: 'See which rule forbids them: sudo dmesg | tail; sysctl -a --pattern userns',
  };
}

function namespacesPowerless(context: FailureContext): Problem {
  const { facts } = context;
  if (facts.apparmorRestricts) return apparmor(context);
  const where = facts.container ? 'The container around ags' : 'A security module of this machine';
  const hint = facts.container
    ? 'Start the container with: --security-opt seccomp=unconfined --security-opt apparmor=unconfined --security-opt systempaths=unconfined'
    : 'See what it says: sudo dmesg | tail';
  return {
    cause: 'namespaces',
    message: `${where} allows user namespaces but gives no rights in them, so no sandbox can be set up.`,
    hint,
  };
}

function switchedOff(why: string, setting: string): Problem {
  return {
    cause: 'namespaces',
    message: `User namespaces are switched off on this machine (${why}), and every sandbox needs one.`,
    hint: `Run: sudo sysctl -w ${setting} (and to keep it: echo ${setting} | sudo tee /etc/sysctl.d/60-ags.conf)`,
  };
}

/** ags never writes the profile itself: the machine's owner decides which program may have user namespaces. */
export function apparmor({ facts, programs }: FailureContext): Problem {
  // Two profiles for one program conflict.
  const needed = facts.bwrapProfile ? [programs.unshare] : [programs.bwrap, programs.unshare];
  const lines = [
    'abi <abi/4.0>,',
    ...needed.map((path) => `profile ags-${path.split('/').at(-1)} ${path} flags=(unconfined) { userns, }`),
  ];
  return {
    cause: 'apparmor',
    message:
      'AppArmor gives no rights in user namespaces to the programs that start a sandbox (kernel.apparmor_restrict_unprivileged_userns is 1).',
    hint: `Allow it for them: printf '%s\\n' ${lines.map((line) => `'${line}'`).join(' ')} | sudo tee /etc/apparmor.d/ags && sudo apparmor_parser -r /etc/apparmor.d/ags`,
  };
}

function notMapped({ facts }: FailureContext, [, path = '', why = '']: RegExpExecArray): Problem {
  if (facts.inUserNamespace) {
    return {
      cause: 'id-map',
      message:
        'You are root only inside a container, which does not allow ID-mapped mounts; a sandbox of root needs them.',
      hint: "Run ags as an ordinary user of the container: su <user> -c 'ags doctor'",
    };
  }
  return {
    cause: 'id-map',
    message: `A sandbox of root needs id-mapped mounts, and ${visible(path)} does not allow them (${visible(why)}): Linux 5.12 and a local file system are needed.`,
    hint: "Run ags as an ordinary user: su <user> -c 'ags doctor'",
  };
}
