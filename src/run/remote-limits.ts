// run/remote-limits.ts: what a sandbox on another machine cannot have. It is refused in words, never left out in silence.
import { AgsError } from '../protocol/errors.ts';
import type { EffectiveConfig } from '../config/effective.ts';

export function refuseWhatIsNear(
  config: Pick<EffectiveConfig, 'image' | 'mounts' | 'services' | 'compose' | 'docker'>,
): void {
  const refuse = (what: string): never => {
    throw new AgsError('backend.unavailable', `A sandbox on another machine cannot have ${what}.`, {
      hint: 'Leave it out, or use an engine of this machine: --backend native',
    });
  };
  if (config.image === null)
    throw new AgsError(
      'backend.unavailable',
      'A sandbox on another machine needs an image: the programs of this one are not there.',
      { hint: 'Name one that the engine has: --image <name>, or use: --backend native' },
    );
  const mount = config.mounts.find(({ optional }) => !optional);
  if (mount !== undefined) refuse(`${mount.path} of this one (mounts:)`);
  const [service] = config.services;
  if (service !== undefined) refuse(`services, which run on this one (${service.name})`);
  if (config.compose !== null) refuse('the services of a compose file, which run on this one');
  if (config.docker.enabled) refuse('an engine inside, which runs on this one (docker: true)');
}
