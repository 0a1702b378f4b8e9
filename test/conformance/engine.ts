// test/conformance/engine.ts: is there an engine to test with? `npm run test:all` starts one where it can.
// uses: docker
import { spawnSync } from 'node:child_process';
import { ENGINE } from './docker-backend.ts';

const { status, stderr } = spawnSync(ENGINE.program, ['version'], { env: ENGINE.env, encoding: 'utf8' });

/** Without one, tests of containers are left out; with AGS_REQUIRE_ALL they fail. */
export const HAS_ENGINE = status === 0;
if (!HAS_ENGINE && process.env['AGS_REQUIRE_ALL'] !== undefined) throw new Error(`No Docker engine answers: ${stderr}`);
