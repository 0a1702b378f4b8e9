// sandbox/remote/volume.ts: a run's data on a remote engine: one volume with copies of all that its sandbox sees, and an image with our
// programs.
// Invariant: this machine has the authoritative copy. A volume exists from the start of a sandbox until its changes are copied back.
// While changes are outstanding, a file of the run says so, and nothing continues without them.
import { createHash } from 'node:crypto';
import { spawn } from 'node:child_process';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { basename, join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { replaceFile } from '../../lib/files.ts';
import { isAlive, type ProcessIdentity } from '../../lib/process/liveness.ts';
import { tryLock } from '../../lib/process/lock.ts';
import { run, withStreams } from '../../lib/process/process.ts';
import { AgsError } from '../../protocol/errors.ts';
import { REMOTE_MEMO } from '../backend.ts';
import { REMOTE_LABEL, LABEL } from '../container/container-args.ts';
import { readLabel } from '../container/leftovers.ts';
import { askEngine, engineArgv, engineRefused, callEngine, type Engine } from '../engine/engine.ts';
import { importArgs } from '../engine/images.ts';
import { ENGINE_KINDS } from '../engine/engine-kinds.ts';
import { fileSyncArgs, type RemotePlace } from './remote-args.ts';
import { packPayload, unpackPayload, type Payload } from './payload.ts';
import { isOurDead, stateMark } from '../engine/owner.ts';

/** The files that must be copied back, and their origin. */
export interface RemoteMemo {
  readonly engine: Engine;
  readonly place: RemotePlace;
  /** Numbers on the remote machine, directories here. */
  readonly returns: readonly (readonly [number, string])[];
  readonly maxBytes: number;
  /** The runner that owns the sandbox. */
  readonly runner: ProcessIdentity;
}

/** The prefix of such image names. */
export const REMOTE_IMAGES = 'ags-skeleton:far-';

/** Named by its content, so that it is sent to an engine only once. */
export async function ensureRemoteImage(engine: Engine, interpreter: string): Promise<string> {
  const packed = await run(
    [
      'tar',
      '--format=posix',
      '--pax-option=delete=atime,delete=ctime',
      '--owner=root:0',
      '--group=root:0',
      '--mtime=@0',
      '--sort=name',
      '--transform',
      `s,^${basename(interpreter)},far/perl,`,
      '-C',
      join(interpreter, '..'),
      '-cf',
      '-',
      basename(interpreter),
    ],
    { env: { PATH: '/usr/bin:/bin' } },
  );
  if (packed.exitCode !== 0)
    throw new AgsError(
      'backend.failed',
      `The programs for the remote engine could not be packed: ${packed.stderr.trim()}`,
    );
  const name = `${REMOTE_IMAGES}${createHash('sha256').update(packed.stdout).digest('hex').slice(0, 32)}`;
  if ((await askEngine(engine, ['image', 'inspect', '--format', '.', name])).exitCode !== 0)
    await callEngine(engine, [...importArgs('skeleton'), name], packed.stdout);
  return name;
}

/** Creates a volume with this payload. Removes the volume if that fails. */
export async function sendPayload(
  engine: Engine,
  place: Omit<RemotePlace, 'mountpoint'>,
  payload: readonly Payload[],
): Promise<RemotePlace> {
  const labels = ['--label', `${LABEL}=${place.run}`, '--label', `${REMOTE_LABEL}=${place.owner}`];
  await callEngine(engine, ['volume', 'create', ...labels, place.volume]);
  try {
    const mountpoint = await callEngine(engine, ['volume', 'inspect', '--format', '{{.Mountpoint}}', place.volume]);
    if (!/^\/[^\n,"]+$/.test(mountpoint))
      throw new AgsError('backend.failed', 'The engine reports no path for its volumes.');
    const whole = { ...place, mountpoint };
    const fileSync = startFileSync(engine, fileSyncArgs(whole, 'in', []));
    await pipeline(Readable.from(packPayload(payload)), fileSync.stdin, { end: false }).catch((error: unknown) => {
      if (error instanceof AgsError) throw error;
    });
    let said = '';
    const heard = (chunk: Buffer): void => {
      said += chunk.toString('latin1');
      if (said.length >= ARRIVED.length) fileSync.stdin.end();
      if (said.length > ARRIVED.length) fileSync.end();
    };
    fileSync.stdout.on('data', heard);
    await fileSync.done;
    if (said !== ARRIVED) throw new AgsError('backend.failed', 'Some files did not arrive on the remote engine.');
    return whole;
  } catch (error) {
    await removeVolume(engine, place.volume);
    throw error;
  }
}

const ARRIVED = 'ok\n';

/** Copies the sandbox's changes into the directories of the run, then removes the volume. */
export async function bringBack(runDir: string): Promise<void> {
  const memo = readMemo(runDir);
  if (memo === null) return;
  const { engine, place, returns, runner } = memo;
  if (runner.pid !== process.pid && isAlive(runner))
    throw new AgsError('task.busy', 'Its sandbox is still running on a remote engine.', {
      hint: 'Try again when it has ended.',
    });
  using lock = tryLock(join(runDir, 'far.lock'));
  if (lock === null)
    throw new AgsError('task.busy', 'Its files are already being copied back.', { hint: 'Try again in a moment.' });
  await removeSandboxes(engine, place);
  const fileSync = startFileSync(
    engine,
    fileSyncArgs(
      place,
      'out',
      returns.map(([at]) => String(at)),
    ),
  );
  const owner = process.getuid?.() === 0 ? { uid: place.user.uid, gid: place.user.gid } : null;
  await Promise.all([
    unpackPayload(fileSync.stdout as AsyncIterable<Buffer>, new Map(returns), { owner, maxBytes: memo.maxBytes }).then(
      () => fileSync.stdin.end(),
      // The file sync's own error explains more.
      async (error: unknown) => {
        fileSync.end();
        await fileSync.done;
        throw error;
      },
    ),
    fileSync.done,
  ]);
  rmSync(memoFile(runDir));
  await removeVolume(engine, place.volume);
}

/** Containers that have the files open could still write. */
async function removeSandboxes(engine: Engine, { run: mark, volume }: RemotePlace): Promise<void> {
  const list = ['ps', '--all', '--quiet', '--filter', `label=${LABEL}=${mark}`, '--filter', `name=^/?${volume}-`];
  const ids = (await callEngine(engine, list)).split('\n').filter((id) => id !== '');
  if (ids.length > 0) await askEngine(engine, ['rm', '--force', '--volumes', ...ids]);
}

export async function removeVolume(engine: Engine, name: string): Promise<boolean> {
  return (await askEngine(engine, ['volume', 'rm', '--force', name])).exitCode === 0;
}

function startFileSync(
  engine: Engine,
  args: readonly string[],
): { stdin: NodeJS.WritableStream; stdout: Readable; done: Promise<void>; end(): void } {
  const [file = '', ...rest] = engineArgv(engine, args);
  const child = withStreams(spawn(file, rest, { cwd: '/', env: engine.env, detached: true, stdio: 'pipe' }));
  let said = '';
  child.stderr.on('data', (chunk: Buffer) => (said = (said + chunk.toString('utf8')).slice(-4096)));
  child.stdin.on('error', () => undefined);
  const done = new Promise<void>((resolve, reject) => {
    child.on('error', (error) => reject(engineRefused(engine, error.message)));
    child.on('close', (code) => (code === 0 ? resolve() : reject(engineRefused(engine, said))));
  });
  done.catch(() => undefined);
  return {
    stdin: child.stdin,
    stdout: child.stdout,
    done,
    end: () => void child.kill(),
  };
}

function memoFile(runDir: string): string {
  return join(runDir, REMOTE_MEMO);
}

export function readMemo(runDir: string): RemoteMemo | null {
  const file = memoFile(runDir);
  return existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as RemoteMemo) : null;
}

export function writeMemo(runDir: string, memo: RemoteMemo): void {
  replaceFile(memoFile(runDir), JSON.stringify(memo), { durable: true });
}

export interface RemoteLeftover {
  readonly kind: 'container' | 'volume';
  readonly id: string;
  readonly run: string;
}

/**
 * Leftovers of dead processes with this state directory. Volumes may contain work, and only the state directory tells whether it is still
 * needed. Leftovers of other users and other state directories belong to them, and so do those of earlier builds, which did not name
 * their owner.
 */
export async function remoteLeftovers(engine: Engine, stateDir: string): Promise<readonly RemoteLeftover[]> {
  const mark = stateMark(stateDir);
  const { label } = ENGINE_KINDS.docker;
  const filter = ['--filter', `label=${REMOTE_LABEL}`, '--format'];
  const list = async (kind: RemoteLeftover['kind'], args: readonly string[], name: string): Promise<RemoteLeftover[]> =>
    (await askEngine(engine, [...args, ...filter, `{{.${name}}}\t${label(LABEL)}\t${label(REMOTE_LABEL)}`])).stdout
      .toString('utf8')
      .split('\n')
      .flatMap((line) => {
        const [id = '', run = '', owner = ''] = line.split('\t');
        return isOurDead(id, readLabel(owner), mark) ? [{ kind, id, run: readLabel(run) }] : [];
      });
  return [...(await list('container', ['ps', '--all'], 'Names')), ...(await list('volume', ['volume', 'ls'], 'Name'))];
}
