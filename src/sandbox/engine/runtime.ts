// sandbox/engine/runtime.ts: checks the runtime, the program with which an engine runs containers.
import { AgsError } from '../../protocol/errors.ts';
import { callEngine, type Engine } from './engine.ts';
import { ENGINE_KINDS } from './engine-kinds.ts';
import { findProgram } from '../programs.ts';

/** Throws if the engine does not have the runtime, before anything is created. */
export async function checkRuntime(engine: Engine | null, runtime: string): Promise<void> {
  if (engine === null)
    throw new AgsError(
      'backend.unavailable',
      `The runtime ${runtime} needs a container: the native sandbox has none.`,
      {
        hint: 'Use --backend docker, or leave "runtime" out of the configuration: ags config runtime',
      },
    );
  const known = await listRuntimes(engine);
  if (known.includes(runtime)) return;
  throw new AgsError(
    'backend.unavailable',
    `${engine.name} has no runtime called ${runtime}; it has ${known.join(', ')}.`,
    {
      hint: `Add it to the engine${engine.socket === null ? '' : ' (runtimes in daemon.json)'}, or choose another: --runtime runc`,
    },
  );
}

async function listRuntimes(engine: Engine): Promise<string[]> {
  const { runtimes } = ENGINE_KINDS[engine.name];
  if (runtimes !== null) return runtimes.filter((name) => findProgram(name) !== null);
  const said = await callEngine(engine, ['info', '--format', '{{json .Runtimes}}']);
  const found: unknown = JSON.parse(said === '' ? '{}' : said);
  return typeof found === 'object' && found !== null ? Object.keys(found).toSorted() : [];
}
