// run/readiness.ts: may a sandbox start here, and with which workspace? Probed once per boot, then cached.
// Invariant: no sandbox starts unless a complete one has worked on this machine, since this boot, for this user.
import { existsSync, mkdirSync, readFileSync, statfsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { AgsError } from '../protocol/errors.ts';
import { remember } from '../lib/remember.ts';
import type { WorkspaceChoice } from '../config/effective.ts';
import type { NativeHost } from '../sandbox/checks/host.ts';
import { inspectMachine, type HostContext } from './host-context.ts';
import { type Readiness } from './probe.ts';

export async function workspaceKind(
  context: HostContext,
  host: NativeHost,
  wanted: WorkspaceChoice,
): Promise<{ kind: 'overlay' | 'copy'; why: string; overlays: boolean; namespaces: boolean }> {
  if (host.engine?.far != null) return remoteKind(context, wanted);
  const ready = await readiness(context, host);
  if (ready.problem !== null)
    throw new AgsError('backend.unavailable', ready.problem.message, { hint: ready.problem.hint });
  const overlays = ready.overlay.works;
  const { namespaces } = ready;
  if (wanted === 'copy') return { kind: 'copy', why: 'the configuration asks for it', overlays, namespaces };
  if (overlays) return { kind: 'overlay', why: '', overlays, namespaces };
  if (wanted === 'overlay')
    throw new AgsError('backend.unavailable', `An overlay workspace is not possible: ${ready.overlay.why}.`, {
      hint: 'Allow a full copy with: --workspace copy',
    });
  return { kind: 'copy', why: ready.overlay.why, overlays, namespaces };
}

/** Remote sandboxes are verified before each command; local sandboxes inspect the files that come back. */
async function remoteKind(context: HostContext, wanted: WorkspaceChoice): ReturnType<typeof workspaceKind> {
  if (wanted === 'overlay')
    throw new AgsError(
      'backend.unavailable',
      'An overlay workspace is not possible: the engine is on another machine.',
      {
        hint: 'Allow a full copy with: --workspace copy',
      },
    );
  const here = await readiness(context, await inspectMachine(context));
  if (here.problem !== null)
    throw new AgsError(
      'backend.unavailable',
      `ags inspects files from another machine in a local sandbox, and none works here. ${here.problem.message}`,
      {
        hint: here.problem.hint,
      },
    );
  return { kind: 'copy', why: 'the engine is on another machine', overlays: false, namespaces: true };
}

async function readiness(context: HostContext, host: NativeHost): Promise<Readiness> {
  const file = join(context.cacheDir, host.engine === null ? 'ready.json' : `ready-${host.engine.name}.json`);
  const remembered = recall(file);
  if (remembered?.key === readinessKey(context, host)) return remembered.answer;
  const { probeReadiness } = await import('./probe.ts');
  const fresh = await probeReadiness(context, host);
  // Only success is cached: a user who has just fixed a problem must not see it again. A temporary failure of overlays is not cached
  // either, or every later task would copy its project.
  const { overlay } = fresh;
  if (fresh.problem === null && (overlay.works || overlay.lasts === true))
    remember(file, JSON.stringify({ key: readinessKey(context, host), answer: fresh }));
  return fresh;
}

function readinessKey(context: HostContext, host: NativeHost): string {
  const program = host.engine === null ? host.programs.bwrap : host.engine.program;
  const builder = statSync(program);
  // A restarted engine may have other settings.
  const socket = host.engine?.socket ?? null;
  const engine = socket === null ? null : statSync(socket).ctimeMs;
  const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  // Another build of ags may start sandboxes differently.
  const self = statSync(import.meta.filename).mtimeMs;
  return JSON.stringify([
    boot,
    self,
    context.uid,
    context.kernel,
    program,
    builder.mtimeMs,
    builder.size,
    engine,
    // An overlay depends on the file system that holds its layers.
    fileSystemOf(context.stateDir),
  ]);
}

/** Creates a missing directory, as the probe does: the key must not change between the first start and the next. */
function fileSystemOf(path: string): string | null {
  try {
    if (!existsSync(path)) mkdirSync(path, { recursive: true, mode: 0o700 });
    // After an unmount the kernel reuses the device number, also for another type of file system.
    return `${statSync(path).dev} ${statfsSync(path).type}`;
  } catch {
    // Not accessible: the probe will report why.
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
