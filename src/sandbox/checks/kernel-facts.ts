// sandbox/checks/kernel-facts.ts: reads the kernel's settings, and those of a container around us, that decide whether sandboxes work. A
// missing file is a setting that this kernel does not have.
import { existsSync, readFileSync, statfsSync } from 'node:fs';
import { join } from 'node:path';

export interface KernelFacts {
  /** user.max_user_namespaces */
  readonly maxUserNamespaces: number | null;
  /** kernel.unprivileged_userns_clone: Debian and its relatives. */
  readonly unprivilegedUserns: number | null;
  /** kernel.apparmor_restrict_unprivileged_userns: Ubuntu 23.10 and newer. */
  readonly apparmorRestricts: boolean;
  /** The system's own AppArmor profile for bubblewrap is installed. */
  readonly bwrapProfile: boolean;
  /** dev.tty.legacy_tiocsti */
  readonly tiocsti: number | null;
  readonly seccompActions: readonly string[];
  /** Active security modules; empty if they cannot be read. */
  readonly securityModules: readonly string[];
  /** We run in a container, or in a user namespace of another program. */
  readonly container: boolean;
  /** Root here is not the machine's root. */
  readonly inUserNamespace: boolean;
}

export function readKernelFacts(root = '/'): KernelFacts {
  const at = (path: string): string => join(root, path);
  return {
    maxUserNamespaces: readNumber(at('proc/sys/user/max_user_namespaces')),
    unprivilegedUserns: readNumber(at('proc/sys/kernel/unprivileged_userns_clone')),
    apparmorRestricts: readNumber(at('proc/sys/kernel/apparmor_restrict_unprivileged_userns')) === 1,
    bwrapProfile: existsSync(at('etc/apparmor.d/bwrap-userns-restrict')),
    tiocsti: readNumber(at('proc/sys/dev/tty/legacy_tiocsti')),
    seccompActions: words(read(at('proc/sys/kernel/seccomp/actions_avail'))),
    securityModules: words((read(at('sys/kernel/security/lsm')) ?? '').replaceAll(',', ' ')),
    container:
      CONTAINER_MARKS.some((path) => existsSync(at(path))) ||
      /docker|kubepods|libpod|containerd|lxc/.test(read(at('proc/1/cgroup')) ?? ''),
    inUserNamespace: !/^\s*0\s+0\s+4294967295\s*$/.test(read(at('proc/self/uid_map')) ?? '0 0 4294967295'),
  };
}

const CONTAINER_MARKS = ['.dockerenv', 'run/.containerenv', 'run/systemd/container'];

/** Named by the type number of statfs(2); an unknown type shows its number. */
export function fileSystemOf(path: string): string {
  const { type } = statfsSync(path);
  return FILE_SYSTEMS[type] ?? `a file system of type 0x${type.toString(16)}`;
}

const FILE_SYSTEMS: Readonly<Record<number, string>> = {
  0xef53: 'ext4',
  0x58465342: 'xfs',
  0x9123683e: 'btrfs',
  0xf2f52010: 'f2fs',
  0x2fc12fc1: 'zfs',
  0xca451a4e: 'bcachefs',
  0x01021994: 'tmpfs',
  0x794c7630: 'overlay',
  0x6969: 'nfs',
  0x01021997: '9p',
  0x65735546: 'fuse',
  0xff534d42: 'cifs',
  0xfe534d42: 'smb',
  0xf15f: 'ecryptfs',
  0x6a656a63: 'virtiofs',
  0x4d44: 'vfat',
  0x2011bab0: 'exfat',
  0x5346544e: 'ntfs',
};

function readNumber(path: string): number | null {
  const value = Number.parseInt(read(path) ?? '', 10);
  return Number.isNaN(value) ? null : value;
}

function words(text: string | null): string[] {
  return (text ?? '').split(/\s+/).filter((word) => word !== '');
}

function read(path: string): string | null {
  try {
    return readFileSync(path, 'latin1');
  } catch {
    // Missing or unreadable: there is no value.
    return null;
  }
}
