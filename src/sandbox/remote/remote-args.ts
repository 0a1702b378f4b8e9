// sandbox/remote/remote-args.ts: the command lines of our own containers on the machine of a far engine. Pure.
import { common, program } from '../container/container-args.ts';
import { interpreterMount } from '../container/container-image.ts';
import { bindArgs } from '../container/mounts.ts';
import { MEETING_PLACE } from '../docker-scripts.ts';
import { ENGINE_KINDS } from '../engine/engine-kinds.ts';
import { FAR_PLACE, RELAY } from '../far-scripts.ts';
import { perlAt, INTERPRETER } from '../spec/interpreter.ts';

export interface FarPlace {
  /** Names the volume, and the containers of this one sandbox. */
  readonly volume: string;
  /** Where the engine has the volume: from there it mounts parts of it. */
  readonly mountpoint: string;
  /** Names the run. */
  readonly run: string;
  readonly owner: string;
  /** What our own programs stand on. */
  readonly image: string;
  readonly arch: 'x64' | 'arm64';
  readonly user: { readonly uid: number; readonly gid: number };
}

// sendmsg, recvmsg
const RELAY_CALLS = { x64: '46,47', arm64: '211,212' } as const;
// statx, utimensat, setresgid, setresuid
const FERRY_CALLS = { x64: '332,280,119,117', arm64: '291,88,149,147' } as const;

/** Without a right, but for one moment: a new volume is root's, and is given to the sandbox's user. */
export function ferryArgs(place: FarPlace, way: 'in' | 'out', script: string, places: readonly string[]): string[] {
  const { uid, gid } = place.user;
  const rights = way === 'in' ? ['CHOWN', 'SETUID', 'SETGID'] : [];
  return [
    'run',
    '--interactive',
    ...own(place, `${place.volume}-ferry-${way}`, '1g'),
    '--user',
    way === 'in' ? '0:0' : `${uid}:${gid}`,
    ...rights.flatMap((right) => ['--cap-add', right]),
    '--mount',
    `type=volume,src=${place.volume},dst=${FAR_PLACE}${way === 'in' ? '' : ',volume-nocopy'}`,
    ...program({ perl: perlAt(`${FAR_PLACE}/perl`) }, place.image, script, FERRY_CALLS[place.arch]),
    String(uid),
    String(gid),
    ...places,
  ];
}

export function relayArgs(place: FarPlace): string[] {
  const kind = ENGINE_KINDS.docker;
  return [
    'run',
    '--interactive',
    ...own(place, `${place.volume}-relay`, '512m'),
    '--user',
    `${place.user.uid}:${place.user.gid}`,
    ...bindArgs(kind, `${place.mountpoint}/meet`, MEETING_PLACE, true),
    ...interpreterMount(kind, `${place.mountpoint}/perl`),
    ...program({ perl: perlAt(INTERPRETER) }, place.image, RELAY, RELAY_CALLS[place.arch]),
  ];
}

function own({ run, owner }: FarPlace, name: string, memory: string): string[] {
  return [
    ...common({ run, owner, kind: ENGINE_KINDS.docker, rootless: false, far: true }, name),
    '--network',
    'none',
    '--pids-limit',
    '16',
    '--memory',
    memory,
  ];
}
