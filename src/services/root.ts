// services/root.ts: where a service's programs come from: this machine, under the task's own backend, or an image, which needs an engine
// whatever the task's backend is.
import { AgsError } from '../protocol/errors.ts';
import type { ServiceConfig } from '../protocol/service.ts';
import type { Image } from '../sandbox/spec/image.ts';
import type { RunPlan } from '../run/run-plan.ts';
import { inspectMachine, type HostContext } from '../run/host-context.ts';

export interface ServiceRoot {
  /** The task's plan, with the engine that has the image. */
  readonly plan: RunPlan;
  readonly image: Image | null;
}

export async function serviceRoot(context: HostContext, plan: RunPlan, service: ServiceConfig): Promise<ServiceRoot> {
  if (service.image === null) return { plan, image: null };
  const host = plan.host.engine === null ? await someEngine(context, service) : plan.host;
  const { workspaceKind } = await import('../run/readiness.ts');
  const { kind, overlays, namespaces } = await workspaceKind(context, host, 'auto');
  const { inspectImage } = await import('../sandbox/engine/images.ts');
  const image = host.engine === null ? null : await inspectImage(host.engine, service.image);
  if (image !== null) return { plan: { ...plan, host, workspace: kind, overlays, namespaces }, image };
  throw new AgsError('image.missing', `The service ${service.name} needs the image ${service.image}.`, {
    hint: `Pull it: ags image pull ${service.image}. Or start without services: --no-services`,
  });
}

async function someEngine(context: HostContext, service: ServiceConfig): Promise<RunPlan['host']> {
  const { findEngine } = await import('../sandbox/engine/find-engine.ts');
  const { ENGINE_NAMES } = await import('../sandbox/engine/engine-kinds.ts');
  const name = ENGINE_NAMES.find((one) => findEngine(one, context, false) !== null);
  if (name !== undefined) return inspectMachine(context, {}, name);
  throw new AgsError(
    'service.unavailable',
    `The service ${service.name} needs an image, and you have no usable Docker or Podman.`,
    { hint: 'See what is missing: ags doctor. Or start without services: --no-services' },
  );
}
