// nested-docker/services-input.ts: the input of a run's services, both preset and compose services.
import type { ServiceEvent } from '../protocol/event.ts';
import type { TaskPaths } from '../store/layout.ts';
import type { NestedDocker } from './nested-docker.ts';
import type { RunPlan } from '../run/run-plan.ts';
import type { SeedSource } from '../workspace/seed-files.ts';
import type { HostContext } from '../run/host-context.ts';

export interface RunServicesInput {
  readonly context: HostContext;
  readonly plan: RunPlan;
  readonly task: string;
  readonly paths: Pick<TaskPaths, 'services'>;
  readonly source: SeedSource;
  /** The nested Docker that runs compose files; null: the task has none. */
  readonly docker: NestedDocker | null;
  /** Whether the data is needed later: then services are shut down cleanly. */
  readonly keep: boolean;
  onEvent(event: ServiceEvent): void;
}
