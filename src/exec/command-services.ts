// exec/command-services.ts: services beside a command (`ags exec`, `ags shell`): over the user's own files, and gone with it. One that
// fails ends the command.
import { setTimeout as sleep } from 'node:timers/promises';
import { visible } from '../lib/sanitize.ts';
import type { TaskPaths } from '../store/layout.ts';
import type { InnerDocker } from '../nested-docker/nested-docker.ts';
import type { RunPlan } from '../run/plan-run.ts';
import { openRunServices, type RunServices } from '../services/run-services.ts';
import type { World } from '../run/host-context.ts';

export function openCommandServices(
  world: World,
  plan: RunPlan,
  task: string,
  paths: TaskPaths,
  docker: InnerDocker | null,
  notice: (text: string) => void,
  onFailed: (why: string) => void,
): CommandServices {
  const compose = plan.services.compose?.list ?? [];
  if (compose.length > 0) notice(`Compose: bringing up ${compose.map(({ name }) => name).join(', ')}.`);
  const services = openRunServices({
    world,
    plan,
    task,
    paths,
    source: 'live',
    docker,
    keep: false,
    onEvent(event) {
      if (event.type === 'service.seeding')
        notice(`The service ${event.service} is filled for the first time; others after it get a copy.`);
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
  /** A command has nobody who would try again: it begins when those of the compose files are up, or nobody waits any longer. */
  awaitUp(givenUp: () => boolean): Promise<void>;
}

function hintFor(kind: string): string {
  return kind === 'compose'
    ? 'Correct the compose files, or run it without: --no-compose'
    : 'Correct "services" in ags.yaml, or run it without: --no-services';
}
