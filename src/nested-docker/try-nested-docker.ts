// nested-docker/try-nested-docker.ts: does nested Docker work on this machine? Starts one, asks for its version, and ends it.
import { AgsError } from '../protocol/errors.ts';
import type { EffectiveConfig } from '../config/effective.ts';
import { errorCode } from '../lib/error-code.ts';
import { visible } from '../lib/sanitize.ts';
import { askNestedEngine } from './ask-engine.ts';
import { startFor } from './open-nested-docker.ts';
import type { HostContext } from '../run/host-context.ts';

/** The isolation in a few words; throws the reason if it does not work. */
export async function tryNestedEngine(
  context: HostContext,
  config: Pick<EffectiveConfig, 'docker' | 'limits' | 'network'>,
): Promise<string> {
  const begunMs = Date.now();
  const nothing = { onPorts: () => undefined, onEgress: () => undefined };
  const engine = await startFor({ context, id: 'probe', config, notice: () => undefined }, nothing).catch(
    (error: unknown) => (errorCode(error) === undefined ? Promise.reject(error) : fail(String(errorCode(error)))),
  );
  try {
    const answer = await Promise.race([
      askNestedEngine(engine, { path: '/info' }),
      engine.done.then((words) => fail(words)),
    ]);
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
    hint: 'Only needed if the configuration has docker: true',
  });
}
