// sandbox/engine/owner.ts: labels engine objects with their owner: machine, user and process. Several machines and users can share one
// engine, also through a local socket that is forwarded.
// Invariant: an object without exactly our mark belongs to another owner and is left alone, because we cannot tell whether that owner's
// process lives. Labels of builds before there were marks name only a process, so no ags removes such objects, not even `ags cleanup`:
// their containers end with their ags, and one that was never started costs no more than its name. Those old builds find no process in a
// marked label and leave it alone too.
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, readlinkSync } from 'node:fs';
import { hostname } from 'node:os';
import { isAlive, ownIdentity } from '../../lib/process/liveness.ts';

/** Label value for containers: a mark, and the process that made them. */
export function ownerText(mark = userMark()): string {
  const { pid, startTicks } = ownIdentity();
  return `${mark}/${pid}:${startTicks}:${pidNamespace()}`;
}

/**
 * True if the object is ours and its process is dead. The object's name must contain the same process ID, because an image can set labels
 * but not names.
 */
export function isOurDead(name: string, owner: string, mark = userMark()): boolean {
  if (!owner.startsWith(`${mark}/`)) return false;
  const maker = owner.slice(mark.length + 1);
  return isNameOf(name, maker) && isGone(maker);
}

/** Identifies this machine among those that share an engine, without revealing which one it is. */
export function machineMark(): string {
  const id = existsSync('/etc/machine-id') ? readFileSync('/etc/machine-id', 'utf8').trim() : '';
  // In containers this file is often empty, the same for all containers of an image.
  return markHash(id === '' ? hostname() : id);
}

/** Identifies this user of this machine. */
export function userMark(): string {
  return `${machineMark()}.${process.getuid?.() ?? 0}`;
}

/** Identifies this state directory: only there is it known whether remote files are still needed. */
export function stateMark(stateDir: string): string {
  return `${userMark()}.${markHash(stateDir)}`;
}

function markHash(text: string): string {
  return createHash('sha256').update(`ags ${text}`).digest('hex').slice(0, 16);
}

function isNameOf(name: string, maker: string): boolean {
  const pid = /^\d+(?=:)/.exec(maker)?.[0];
  return pid !== undefined && name.startsWith('ags-') && name.includes(`-${pid}-`);
}

/** Only a process in the owner's PID namespace can tell: containers that share an engine number their processes separately. */
function isGone(maker: string): boolean {
  const [pid = '', boot = '', ticks = '', namespace = ''] = maker.split(':');
  const own = ownIdentity().startTicks.split(':')[0];
  if (boot === own && namespace !== pidNamespace()) return false;
  return !isAlive({ pid: Number(pid), startTicks: `${boot}:${ticks}` });
}

function pidNamespace(): string {
  return /\d+/.exec(readlinkSync('/proc/self/ns/pid'))?.[0] ?? '';
}
