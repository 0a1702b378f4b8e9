// services/root.ts: what a service stands on: the programs of this machine, in whatever builds the task's sandboxes, or those of an
// image, for which there must be an engine whoever builds the task's own.
import { AgsError } from '../protocol/errors.ts';
import type { ServiceConfig } from '../protocol/service.ts';
import type { Image } from '../sandbox/spec/image.ts';
import type { RunPlan } from '../run/plan-run.ts';
import { inspectWorld, type World } from '../run/host-context.ts';

export interface ServiceRoot {
  /** The task's, with the engine that has the image. */
  readonly plan: RunPlan;
  readonly image: Image | null;
}

export async function serviceRoot(world: World, plan: RunPlan, service: ServiceConfig): Promise<ServiceRoot> {
  if (service.image === null) return { plan, image: null };
  const host = plan.host.engine === null ? await someEngine(world, service) : plan.host;
  const { workspaceKind } = await import('../run/readiness.ts');
  const { kind, overlays, namespaces } = await workspaceKind(world, host, 'auto');
  const { inspectImage } = await import('../sandbox/engine/images.ts');
  const image = host.engine === null ? null : await inspectImage(host.engine, service.image);
  if (image !== null) return { plan: { ...plan, host, workspace: kind, overlays, namespaces }, image };
  throw new AgsError('image.missing', `The service ${service.name} needs the image ${service.image}.`, {
    hint: `Let the engine fetch it: ags image pull ${service.image}. Without the service: --no-services`,
  });
}

async function someEngine(world: World, service: ServiceConfig): Promise<RunPlan['host']> {
  const { findEngine } = await import('../sandbox/engine/find-engine.ts');
  const { ENGINE_NAMES } = await import('../sandbox/engine/engine-kinds.ts');
  const name = ENGINE_NAMES.find((one) => findEngine(one, world, false) !== null);
  if (name !== undefined) return inspectWorld(world, {}, name);
  throw new AgsError(
    'service.unavailable',
    `The service ${service.name} is an image, and there is no Docker or Podman that you may use.`,
    { hint: 'What is missing: ags doctor. Without services: --no-services' },
  );
}
