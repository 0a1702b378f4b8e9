// exec/command-services.ts: the services of a command (`ags exec`, `ags shell`). They are seeded from the user's own files and end with
// the command. A service that fails ends the command.
import { setTimeout as sleep } from 'node:timers/promises';
import { visible } from '../lib/sanitize.ts';
import type { TaskPaths } from '../store/layout.ts';
import type { NestedDocker } from '../nested-docker/nested-docker.ts';
import type { RunPlan } from '../run/run-plan.ts';
import { openRunServices, type RunServices } from '../services/run-services.ts';
import type { HostContext } from '../run/host-context.ts';

export function openCommandServices(
  context: HostContext,
  plan: RunPlan,
  task: string,
  paths: TaskPaths,
  docker: NestedDocker | null,
  notice: (text: string) => void,
  onFailed: (why: string) => void,
): CommandServices {
  const compose = plan.services.compose?.list ?? [];
  if (compose.length > 0) notice(`Compose: starting ${compose.map(({ name }) => name).join(', ')}.`);
  const services = openRunServices({
    context,
    plan,
    task,
    paths,
    source: 'live',
    docker,
    keep: false,
    onEvent(event) {
      if (event.type === 'service.seeding')
        notice(`The service ${event.service} is being seeded for the first time; later runs get a copy.`);
      if (event.type === 'service.failed')
        onFailed([event.why, ...event.lines.map((line) => `  ${visible(line)}`), hintFor(event.kind)].join('\n'));
    },
  });
  return {
    ...services,
    async awaitUp(givenUp) {
      const up = services.up.then(() => true);
      for (let over = false; !over && !givenUp();) over = await Promise.race([up, sleep(LOOK_MS, false)]);
    },
  };
}

const LOOK_MS = 100;

export interface CommandServices extends RunServices {
  /** Waits until the compose services are up, because a command does not retry its connections as an agent does. */
  awaitUp(givenUp: () => boolean): Promise<void>;
}

function hintFor(kind: string): string {
  return kind === 'compose'
    ? 'Correct the compose files, or run without them: --no-compose'
    : 'Correct "services" in ags.yaml, or run without them: --no-services';
}
