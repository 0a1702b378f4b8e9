// run/readiness.ts: may a sandbox be started here at all, and on what kind of workspace? Asked once per boot, then remembered.
// Invariant: no sandbox is started unless a complete one has been seen to work on this machine, this boot, by this user.
import { existsSync, mkdirSync, readFileSync, statfsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { AgsError } from '../protocol/errors.ts';
import { remember } from '../lib/remember.ts';
import type { WorkspaceChoice } from '../config/effective.ts';
import type { NativeHost } from '../sandbox/checks/host.ts';
import { inspectWorld, type World } from './host-context.ts';

export interface Readiness {
  /** null: a complete sandbox works. Otherwise the sentence and its cure, as `ags doctor` says them. */
  readonly problem: { readonly message: string; readonly hint: string } | null;
  /** `lasts`: it is the machine that has none. Without, something went wrong this once, such as a full disk. */
  readonly overlay: { readonly works: boolean; readonly why: string; readonly lasts?: boolean };
  /** Others than bwrap may make namespaces. */
  readonly namespaces: boolean;
}

export async function workspaceKind(
  world: World,
  host: NativeHost,
  wanted: WorkspaceChoice,
): Promise<{ kind: 'overlay' | 'copy'; why: string; overlays: boolean; namespaces: boolean }> {
  if (host.engine?.far != null) return farKind(world, wanted);
  const ready = await readiness(world, host);
  if (ready.problem !== null)
    throw new AgsError('backend.unavailable', ready.problem.message, { hint: ready.problem.hint });
  const overlays = ready.overlay.works;
  const { namespaces } = ready;
  if (wanted === 'copy') return { kind: 'copy', why: 'the configuration asks for it', overlays, namespaces };
  if (overlays) return { kind: 'overlay', why: '', overlays, namespaces };
  if (wanted === 'overlay')
    throw new AgsError('backend.unavailable', `An overlay workspace cannot be had: ${ready.overlay.why}.`, {
      hint: 'Allow a full copy with: --workspace copy',
    });
  return { kind: 'copy', why: ready.overlay.why, overlays, namespaces };
}

/** Every sandbox there is looked at before its command runs; and what comes back is looked at in sandboxes of this machine. */
async function farKind(world: World, wanted: WorkspaceChoice): ReturnType<typeof workspaceKind> {
  if (wanted === 'overlay')
    throw new AgsError('backend.unavailable', 'An overlay workspace cannot be had: the engine is on another machine.', {
      hint: 'Allow a full copy with: --workspace copy',
    });
  const here = await readiness(world, await inspectWorld(world));
  if (here.problem !== null)
    throw new AgsError(
      'backend.unavailable',
      `What comes back from another machine is looked at in a sandbox of this one. ${here.problem.message}`,
      {
        hint: here.problem.hint,
      },
    );
  return { kind: 'copy', why: 'the engine is on another machine', overlays: false, namespaces: true };
}

async function readiness(world: World, host: NativeHost): Promise<Readiness> {
  const file = join(world.cacheDir, host.engine === null ? 'ready.json' : `ready-${host.engine.name}.json`);
  const remembered = recall(file);
  if (remembered?.key === readinessKey(world, host)) return remembered.answer;
  const { probeReadiness } = await import('./probe.ts');
  const fresh = await probeReadiness(world, host);
  // Only good news is remembered: a user who has just put something right must not be told about it again.
  // Nor may one bad moment have every task from then on copy its project.
  const { overlay } = fresh;
  if (fresh.problem === null && (overlay.works || overlay.lasts === true))
    remember(file, JSON.stringify({ key: readinessKey(world, host), answer: fresh }));
  return fresh;
}

function readinessKey(world: World, host: NativeHost): string {
  const program = host.engine === null ? host.programs.bwrap : host.engine.program;
  const builder = statSync(program);
  // Another start of the engine may have other settings.
  const socket = host.engine?.socket ?? null;
  const engine = socket === null ? null : statSync(socket).ctimeMs;
  const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  // Another build of ags may start sandboxes in another way.
  const self = statSync(import.meta.filename).mtimeMs;
  return JSON.stringify([
    boot,
    self,
    world.uid,
    world.kernel,
    program,
    builder.mtimeMs,
    builder.size,
    engine,
    // An overlay depends on the file system that holds its layers.
    fileSystemOf(world.stateDir),
  ]);
}

/** Of a directory that is made where there is none, as the probe does: what is known of its file system holds for a new one too. */
function fileSystemOf(path: string): string | null {
  try {
    if (!existsSync(path)) mkdirSync(path, { recursive: true, mode: 0o700 });
    // The number of one that was unmounted is given to the next, which may be of another kind.
    return `${statSync(path).dev} ${statfsSync(path).type}`;
  } catch {
    // Not for us to see or make: the probe will say which.
    return null;
  }
}

function recall(file: string): { key: string; answer: Readiness } | null {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as { key: string; answer: Readiness };
  } catch {
    return null;
  }
}
