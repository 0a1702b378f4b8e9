// sandbox/remote/remote-args.ts: the command lines of our own containers on a remote engine. Pure.
import { perlProgram } from '../../lib/perl.ts';
import { common, MEETING_PLACE, program } from '../container/container-args.ts';
import { interpreterMount } from '../container/container-image.ts';
import { bindArgs } from '../container/mounts.ts';
import { ENGINE_KINDS } from '../engine/engine-kinds.ts';
import { MAX_FRAME, MAX_STREAMS, STREAM, WINDOW } from './channel.ts';
import { perlAt, INTERPRETER } from '../spec/interpreter.ts';

/** Mount point of the run's volume in our containers. */
const REMOTE_PLACE = '/far';

export interface RemotePlace {
  /** Names the volume, and the containers of this one sandbox. */
  readonly volume: string;
  /** The volume's path on the remote machine, from which the engine mounts parts of it. */
  readonly mountpoint: string;
  /** Names the run. */
  readonly run: string;
  readonly owner: string;
  /** The image of our own programs. */
  readonly image: string;
  readonly arch: 'x64' | 'arm64';
  readonly user: { readonly uid: number; readonly gid: number };
}

// sendmsg, recvmsg
const RELAY_CALLS = { x64: '46,47', arm64: '211,212' } as const;
// statx, utimensat, setresgid, setresuid
const SYNC_CALLS = { x64: '332,280,119,117', arm64: '291,88,149,147' } as const;

/** Without capabilities, except at first: a new volume belongs to root and is given to the sandbox's user. */
export function fileSyncArgs(place: RemotePlace, way: 'in' | 'out', places: readonly string[]): string[] {
  const { uid, gid } = place.user;
  const script = perlProgram(`sandbox/perl/file-sync-${way}.pl`, { REMOTE_PLACE: REMOTE_PLACE });
  const rights = way === 'in' ? ['CHOWN', 'SETUID', 'SETGID'] : [];
  return [
    'run',
    '--interactive',
    ...own(place, `${place.volume}-ferry-${way}`, '1g'),
    '--user',
    way === 'in' ? '0:0' : `${uid}:${gid}`,
    ...rights.flatMap((right) => ['--cap-add', right]),
    '--mount',
    `type=volume,src=${place.volume},dst=${REMOTE_PLACE}${way === 'in' ? '' : ',volume-nocopy'}`,
    ...program({ perl: perlAt(`${REMOTE_PLACE}/perl`) }, place.image, script, SYNC_CALLS[place.arch]),
    String(uid),
    String(gid),
    ...places,
  ];
}

export function relayArgs(place: RemotePlace): string[] {
  const kind = ENGINE_KINDS.docker;
  const given = { MEETING_PLACE, WINDOW, MAX_FRAME, MAX_STREAMS, TERMINAL: STREAM.terminal };
  const relay = perlProgram('sandbox/perl/relay.pl', given);
  return [
    'run',
    '--interactive',
    ...own(place, `${place.volume}-relay`, '512m'),
    '--user',
    `${place.user.uid}:${place.user.gid}`,
    ...bindArgs(kind, `${place.mountpoint}/meet`, MEETING_PLACE, true),
    ...interpreterMount(kind, `${place.mountpoint}/perl`),
    ...program({ perl: perlAt(INTERPRETER) }, place.image, relay, RELAY_CALLS[place.arch]),
  ];
}

function own({ run, owner }: RemotePlace, name: string, memory: string): string[] {
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
