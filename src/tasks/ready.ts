// tasks/ready.ts: may a sandbox be started here at all, and on what kind of workspace? Asked once per boot, then remembered.
// Invariant: no sandbox is started unless a complete one has been seen to work on this machine, this boot, by this user.
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { AgsError } from '../protocol/errors.ts';
import { remember } from '../lib/remember.ts';
import type { WorkspaceChoice } from '../config/effective.ts';
import type { NativeHost } from '../sandbox/host.ts';
import type { World } from './world.ts';

export interface Readiness {
  /** null: a complete sandbox works. Otherwise the sentence and its cure, as `ags doctor` says them. */
  readonly problem: { readonly message: string; readonly hint: string } | null;
  readonly overlay: { readonly works: boolean; readonly why: string };
  /** Others than bwrap may make namespaces. */
  readonly namespaces: boolean;
}

export async function workspaceKind(
  world: World,
  host: NativeHost,
  wanted: WorkspaceChoice,
): Promise<{ kind: 'overlay' | 'copy'; why: string; overlays: boolean; namespaces: boolean }> {
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

async function readiness(world: World, host: NativeHost): Promise<Readiness> {
  const file = join(world.cacheDir, 'ready.json');
  const remembered = recall(file);
  if (remembered?.key === readinessKey(world, host)) return remembered.answer;
  const { probeReadiness } = await import('./probe.ts');
  const fresh = await probeReadiness(world, host);
  // Only good news is remembered: a user who has just put something right must not be told about it again.
  // The probe has made the state directory, which is part of the key.
  if (fresh.problem === null) remember(file, JSON.stringify({ key: readinessKey(world, host), answer: fresh }));
  return fresh;
}

function readinessKey(world: World, host: NativeHost): string {
  const bwrap = statSync(host.programs.bwrap);
  const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  // Another build of ags may start sandboxes in another way.
  const self = statSync(import.meta.filename).mtimeMs;
  return JSON.stringify([
    boot,
    self,
    world.uid,
    world.kernel,
    host.programs.bwrap,
    bwrap.mtimeMs,
    bwrap.size,
    // An overlay depends on the file system that holds its layers.
    deviceOf(world.stateDir),
  ]);
}

function deviceOf(path: string): number | null {
  try {
    return statSync(path).dev;
  } catch {
    // Not there yet, or not for us to see: the probe will say which.
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
