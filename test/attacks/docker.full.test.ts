// test/attacks/docker.full.test.ts: the attempts from inside a Docker container, started by a user who may use the engine.
import { test } from 'vitest';
import { HAS_ENGINE } from '../conformance/engine.ts';
import { insideAttacks } from './inside.ts';

// /var/tmp is /tmp inside, so paths there would have two names.
const PLACE = '/var/lib';

if (HAS_ENGINE)
  insideAttacks(['--backend', 'docker'], {
    disk: PLACE,
    group: 'docker',
  });
if (!HAS_ENGINE) test.skip('no engine answers here', () => undefined);
