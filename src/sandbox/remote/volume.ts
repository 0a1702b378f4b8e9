// sandbox/remote/volume.ts: what a run has on the machine of a far engine: one volume, with copies of all that its sandbox sees, and an image with
// the few programs of ours that work there.
// Invariant: the truth is on this machine. A volume is there from the start of a sandbox until what it wrote has come back; while one is there that has
// not come back, a file of the run says so, and nothing goes on without it.
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
import { FAR_MEMO } from '../backend.ts';
import { FAR_LABEL, LABEL } from '../container/container-args.ts';
import { readLabel } from '../container/leftovers.ts';
import { askEngine, engineArgv, engineRefused, tellEngine, type Engine } from '../engine/engine.ts';
import { importArgs } from '../engine/images.ts';
import { ENGINE_KINDS } from '../engine/engine-kinds.ts';
import { ferryArgs, type FarPlace } from './remote-args.ts';
import { packCargo, unpackCargo, type Cargo } from './payload.ts';
import { FERRY_IN, FERRY_OUT } from '../far-scripts.ts';
import { isOurDead, stateMark } from '../engine/owner.ts';

/** What has to come back, and from where. */
export interface FarMemo {
  readonly engine: Engine;
  readonly place: FarPlace;
  /** Numbers over there, directories here. */
  readonly returns: readonly (readonly [number, string])[];
  readonly maxBytes: number;
  /** Whose sandbox it is. */
  readonly runner: ProcessIdentity;
}

/** How the names of such images begin. */
export const FAR_IMAGES = 'ags-skeleton:far-';

/** Named by what is in it, so that it is sent to an engine once. */
export async function ensureFarImage(engine: Engine, interpreter: string): Promise<string> {
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
      `The programs for the other machine could not be packed: ${packed.stderr.trim()}`,
    );
  const name = `${FAR_IMAGES}${createHash('sha256').update(packed.stdout).digest('hex').slice(0, 32)}`;
  if ((await askEngine(engine, ['image', 'inspect', '--format', '.', name])).exitCode !== 0)
    await tellEngine(engine, [...importArgs('skeleton'), name], packed.stdout);
  return name;
}

/** A new volume with these things in it. `made` hears of it as soon as there is something to remove. */
export async function sendCargo(
  engine: Engine,
  place: Omit<FarPlace, 'mountpoint'>,
  cargo: readonly Cargo[],
): Promise<FarPlace> {
  const labels = ['--label', `${LABEL}=${place.run}`, '--label', `${FAR_LABEL}=${place.owner}`];
  await tellEngine(engine, ['volume', 'create', ...labels, place.volume]);
  try {
    const mountpoint = await tellEngine(engine, ['volume', 'inspect', '--format', '{{.Mountpoint}}', place.volume]);
    if (!/^\/[^\n,"]+$/.test(mountpoint))
      throw new AgsError('backend.failed', 'The engine does not say where its volumes are.');
    const whole = { ...place, mountpoint };
    const ferry = startFerry(engine, ferryArgs(whole, 'in', FERRY_IN, []));
    await pipeline(Readable.from(packCargo(cargo)), ferry.stdin, { end: false }).catch((error: unknown) => {
      if (error instanceof AgsError) throw error;
    });
    let said = '';
    const heard = (chunk: Buffer): void => {
      said += chunk.toString('latin1');
      if (said.length >= ARRIVED.length) ferry.stdin.end();
      if (said.length > ARRIVED.length) ferry.end();
    };
    ferry.stdout.on('data', heard);
    await ferry.done;
    if (said !== ARRIVED) throw new AgsError('backend.failed', 'The files did not all arrive.');
    return whole;
  } catch (error) {
    await removeVolume(engine, place.volume);
    throw error;
  }
}

const ARRIVED = 'ok\n';

/** What the sandbox has changed, into the directories of the run; then nothing of it is left over there. */
export async function bringBack(runDir: string): Promise<void> {
  const memo = readMemo(runDir);
  if (memo === null) return;
  const { engine, place, returns, runner } = memo;
  if (runner.pid !== process.pid && isAlive(runner))
    throw new AgsError('task.busy', 'Its sandbox is still running on another machine.', {
      hint: 'Look again when it is over.',
    });
  using lock = tryLock(join(runDir, 'far.lock'));
  if (lock === null)
    throw new AgsError('task.busy', 'What it wrote is being brought back already.', { hint: 'Try again in a moment.' });
  await removeSandboxes(engine, place);
  const ferry = startFerry(
    engine,
    ferryArgs(
      place,
      'out',
      FERRY_OUT,
      returns.map(([at]) => String(at)),
    ),
  );
  const owner = process.getuid?.() === 0 ? { uid: place.user.uid, gid: place.user.gid } : null;
  await Promise.all([
    unpackCargo(ferry.stdout as AsyncIterable<Buffer>, new Map(returns), { owner, maxBytes: memo.maxBytes }).then(
      () => ferry.stdin.end(),
      // Why the ferry ended is the better reason.
      async (error: unknown) => {
        ferry.end();
        await ferry.done;
        throw error;
      },
    ),
    ferry.done,
  ]);
  rmSync(memoFile(runDir));
  await removeVolume(engine, place.volume);
}

/** Whatever has its files open would write on. */
async function removeSandboxes(engine: Engine, { run: mark, volume }: FarPlace): Promise<void> {
  const list = ['ps', '--all', '--quiet', '--filter', `label=${LABEL}=${mark}`, '--filter', `name=^/?${volume}-`];
  const ids = (await tellEngine(engine, list)).split('\n').filter((id) => id !== '');
  if (ids.length > 0) await askEngine(engine, ['rm', '--force', '--volumes', ...ids]);
}

export async function removeVolume(engine: Engine, name: string): Promise<boolean> {
  return (await askEngine(engine, ['volume', 'rm', '--force', name])).exitCode === 0;
}

function startFerry(
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
  return join(runDir, FAR_MEMO);
}

export function readMemo(runDir: string): FarMemo | null {
  const file = memoFile(runDir);
  return existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as FarMemo) : null;
}

export function writeMemo(runDir: string, memo: FarMemo): void {
  replaceFile(memoFile(runDir), JSON.stringify(memo), { durable: true });
}

export interface FarLeftover {
  readonly kind: 'container' | 'volume';
  readonly id: string;
  readonly run: string;
}

/**
 * What dead processes that had this state directory have left there. Volumes may hold work, and whether it is waited for is known in that directory
 * alone: what another user, or the same with another directory, has there is theirs. So is what an earlier build left, which did not say whose it was.
 */
export async function farLeftovers(engine: Engine, stateDir: string): Promise<readonly FarLeftover[]> {
  const mark = stateMark(stateDir);
  const { label } = ENGINE_KINDS.docker;
  const filter = ['--filter', `label=${FAR_LABEL}`, '--format'];
  const list = async (kind: FarLeftover['kind'], args: readonly string[], name: string): Promise<FarLeftover[]> =>
    (await askEngine(engine, [...args, ...filter, `{{.${name}}}\t${label(LABEL)}\t${label(FAR_LABEL)}`])).stdout
      .toString('utf8')
      .split('\n')
      .flatMap((line) => {
        const [id = '', run = '', owner = ''] = line.split('\t');
        return isOurDead(id, readLabel(owner), mark) ? [{ kind, id, run: readLabel(run) }] : [];
      });
  return [...(await list('container', ['ps', '--all'], 'Names')), ...(await list('volume', ['volume', 'ls'], 'Name'))];
}
