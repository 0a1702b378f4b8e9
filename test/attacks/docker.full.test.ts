// test/attacks/docker.full.test.ts: the same attempts from inside a container, whose user may use the engine: the sandbox may not.
import { test } from 'vitest';
import { HAS_ENGINE } from '../conformance/engine.ts';
import { insideAttacks } from './inside.ts';

// Inside, /var/tmp is /tmp: paths would have two names.
const PLACE = '/var/lib';

if (HAS_ENGINE)
  insideAttacks(['--backend', 'docker'], {
    disk: PLACE,
    group: 'docker',
  });
if (!HAS_ENGINE) test.skip('no engine answers here', () => undefined);
