// run/remote-limits.ts: refuses what a sandbox on another machine cannot have. It is never left out silently.
import { AgsError } from '../protocol/errors.ts';
import type { EffectiveConfig } from '../config/effective.ts';

export function refuseWhatIsNear(
  config: Pick<EffectiveConfig, 'image' | 'home' | 'mounts' | 'services' | 'compose' | 'docker'>,
): void {
  const refuse = (what: string): never => {
    throw new AgsError('backend.unavailable', `A sandbox on another machine cannot have ${what}.`, {
      hint: 'Leave it out, or use an engine of this machine: --backend native',
    });
  };
  if (config.image === null)
    throw new AgsError(
      'backend.unavailable',
      'A sandbox on another machine needs an image: the programs of this machine are not there.',
      { hint: 'Name one that the engine has: --image <name>, or use: --backend native' },
    );
  const mount = config.mounts.find(({ optional }) => !optional);
  if (mount !== undefined) refuse(`${mount.path} of this machine (mounts:)`);
  if (config.home.keep !== 'task') refuse('a home that is kept on this machine (home:)');
  const [service] = config.services;
  if (service !== undefined) refuse(`services, which run on this machine (${service.name})`);
  if (config.compose !== null) refuse('the services of a compose file, which run on this machine');
  if (config.docker.enabled) refuse('nested Docker, which runs on this machine (docker: true)');
}
