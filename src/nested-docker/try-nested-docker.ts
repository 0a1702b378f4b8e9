// nested-docker/try-nested-docker.ts: does an engine inside work here? One is started, asked what it is, and ended.
import { AgsError } from '../protocol/errors.ts';
import type { EffectiveConfig } from '../config/effective.ts';
import { errorCode } from '../lib/error-code.ts';
import { visible } from '../lib/sanitize.ts';
import { askInner } from './ask-engine.ts';
import { startFor } from './open-nested-docker.ts';
import type { World } from '../run/host-context.ts';

/** What isolation it has, in a few words; throws why there is none. */
export async function tryInnerEngine(
  world: World,
  config: Pick<EffectiveConfig, 'docker' | 'limits' | 'network'>,
): Promise<string> {
  const begunMs = Date.now();
  const nothing = { onPorts: () => undefined, onHall: () => undefined };
  const engine = await startFor({ world, id: 'probe', config, notice: () => undefined }, nothing).catch(
    (error: unknown) => (errorCode(error) === undefined ? Promise.reject(error) : fail(String(errorCode(error)))),
  );
  try {
    const answer = await Promise.race([askInner(engine, { path: '/info' }), engine.done.then((words) => fail(words))]);
    const info = answer as { ServerVersion?: unknown; Driver?: unknown; SecurityOptions?: unknown };
    const options = Array.isArray(info.SecurityOptions) ? info.SecurityOptions.map(String) : [];
    if (!options.some((option) => option.includes('rootless'))) return fail('it is not rootless');
    const words = [`Docker ${String(info.ServerVersion)}`, 'rootless', 'no privileges', String(info.Driver)];
    return visible(`${words.join(', ')}, ready in ${Date.now() - begunMs} ms`);
  } finally {
    await engine.close();
  }
}

function fail(why: string): never {
  throw new AgsError('backend.failed', why === '' ? 'it ended at once' : why, {
    hint: 'Not needed unless the configuration says docker: true',
  });
}
