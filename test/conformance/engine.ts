// test/conformance/engine.ts: whether Docker is available. `npm run test:all` starts it where it can.
// uses: docker
import { spawnSync } from 'node:child_process';
import { ENGINE } from './docker-backend.ts';

const { status, stderr } = spawnSync(ENGINE.program, ['version'], { env: ENGINE.env, encoding: 'utf8' });

/** Without Docker, container tests are skipped; with AGS_REQUIRE_ALL they fail. */
export const HAS_ENGINE = status === 0;
if (!HAS_ENGINE && process.env['AGS_REQUIRE_ALL'] !== undefined) throw new Error(`No Docker engine answers: ${stderr}`);
