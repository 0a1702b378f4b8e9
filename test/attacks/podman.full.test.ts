// test/attacks/podman.full.test.ts: the attempts from inside a Podman container, of an ordinary user and of root.
import { afterAll, beforeAll, test } from 'vitest';
import { createPodmanUser, HAS_PODMAN, type PodmanUser } from '../sandbox/podman-user.ts';
import { insideAttacks } from './inside.ts';

let user: PodmanUser | undefined;
beforeAll(() => {
  if (HAS_PODMAN) user = createPodmanUser('ags-attacks');
});
afterAll(() => user?.[Symbol.dispose]());

if (HAS_PODMAN)
  insideAttacks(['--backend', 'podman'], {
    user: () => {
      if (user === undefined) throw new Error('there is no user');
      return user;
    },
    ofEngine: /^[^:]*\/home\/(\.local\/share|\.config\/cni|\.local\/share\/containers)(\/[^:]*)?: not there -> /,
  });
if (!HAS_PODMAN) test.skip('Podman is not installed here', () => undefined);
