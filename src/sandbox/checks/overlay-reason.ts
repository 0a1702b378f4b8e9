// sandbox/checks/overlay-reason.ts: explains why copy-on-write workspaces do not work here, as half a sentence ("because ..."). Pure.
import { visible } from '../../lib/sanitize.ts';
import { lastLine } from './failure.ts';

export interface OverlayFailure {
  /** The output of mount, perl or the test inside the sandbox. */
  readonly said: string;
  readonly kernel: string;
  readonly stateDir: string;
  readonly fileSystem: string;
}

export function explainOverlay(failure: OverlayFailure): string {
  return overlayReason(failure) ?? `an overlay does not work here (${placeOf(failure)}): ${lastLine(failure.said)}`;
}

/** A permanent reason on this machine. null: no known one; the next attempt may work. */
export function overlayReason(failure: OverlayFailure): string | null {
  const { said, kernel, fileSystem } = failure;
  const place = placeOf(failure);
  if (/unshare failed|[ug]id_map/.test(said))
    return 'this machine gives unshare, which has to mount the overlay, no rights in a user namespace';
  if (/unknown filesystem type|No such device/.test(said)) return 'this kernel has no overlayfs loaded';
  if (/permission denied|Operation not permitted/i.test(said) && isBefore(kernel, 5, 11))
    return `Linux ${kernel} lets only root mount an overlay (5.11 and newer let every user)`;
  if (fileSystem === 'overlay')
    return `${place}, the file system of a container, and overlays cannot be stacked like that`;
  if (fileSystem === 'tmpfs' && isBefore(kernel, 6, 6))
    return `${place}, which supports overlays only from Linux 6.6 on`;
  if (UNFIT.has(fileSystem)) return `${place}, on which an overlay cannot write`;
  return null;
}

const placeOf = ({ stateDir, fileSystem }: OverlayFailure): string =>
  `the state directory ${visible(stateDir)} is on ${fileSystem}`;

/** A command that helps. */
export function overlayFix({ said }: { readonly said: string }): string {
  if (/unknown filesystem type|No such device|has no overlayfs/.test(said)) return 'Run: sudo modprobe overlay';
  return 'Put the state of ags on a local disk: export XDG_STATE_HOME=<directory on ext4, xfs or btrfs>';
}

const UNFIT = new Set(['nfs', '9p', 'fuse', 'cifs', 'smb', 'ecryptfs', 'virtiofs', 'vfat', 'exfat', 'ntfs']);

export function isBefore(version: string, major: number, minor: number): boolean {
  const [a = 0, b = 0] = version.split('.').map((part) => Number.parseInt(part, 10));
  return a < major || (a === major && b < minor);
}
