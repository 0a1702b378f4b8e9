// sandbox/engine/owner.ts: whose something in an engine is: the machine and the user that made it, and which process of theirs. Several machines and
// several users can have the same engine, also by a socket of this machine that leads elsewhere.
// Invariant: what does not carry exactly our mark is somebody else's, and is left alone: whether their process lives cannot be told from here. Labels of
// builds before there were marks name a process and nobody besides, so they are nobody's to judge, not even for `ags cleanup`: such containers end with their
// ags, and one that was made but never started takes no more than its name. Those builds read no process in a label with a mark, and leave it alone too.
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, readlinkSync } from 'node:fs';
import { hostname } from 'node:os';
import { isAlive, ownIdentity } from '../../lib/process/liveness.ts';

/** What containers on an engine of this machine carry: a mark, and the process that made them. */
export function ownerText(mark = userMark()): string {
  const { pid, startTicks } = ownIdentity();
  return `${mark}/${pid}:${startTicks}:${pidNamespace()}`;
}

/** Ours, and whoever made it is dead. Whoever made it put the same process into its name; what something is called, no image can say. */
export function isOurDead(name: string, owner: string, mark = userMark()): boolean {
  if (!owner.startsWith(`${mark}/`)) return false;
  const who = owner.slice(mark.length + 1);
  return isNameOf(name, who) && isGone(who);
}

/** This machine among those that use an engine; which one it is, is nobody's business. */
export function machineMark(): string {
  const id = existsSync('/etc/machine-id') ? readFileSync('/etc/machine-id', 'utf8').trim() : '';
  // In containers the file is often there and empty, as in all others of that image.
  return shortHash(id === '' ? hostname() : id);
}

/** This user of this machine. */
export function userMark(): string {
  return `${machineMark()}.${process.getuid?.() ?? 0}`;
}

/** Whoever has this state directory: only there is it known whether what is on another machine is still waited for. */
export function stateMark(stateDir: string): string {
  return `${userMark()}.${shortHash(stateDir)}`;
}

function shortHash(text: string): string {
  return createHash('sha256').update(`ags ${text}`).digest('hex').slice(0, 16);
}

function isNameOf(name: string, who: string): boolean {
  const pid = /^\d+(?=:)/.exec(who)?.[0];
  return pid !== undefined && name.startsWith('ags-') && name.includes(`-${pid}-`);
}

/** Only who counts processes as the owner did can tell: containers that share an engine count theirs apart. */
function isGone(who: string): boolean {
  const [pid = '', boot = '', ticks = '', namespace = ''] = who.split(':');
  const own = ownIdentity().startTicks.split(':')[0];
  if (boot === own && namespace !== pidNamespace()) return false;
  return !isAlive({ pid: Number(pid), startTicks: `${boot}:${ticks}` });
}

function pidNamespace(): string {
  return /\d+/.exec(readlinkSync('/proc/self/ns/pid'))?.[0] ?? '';
}
