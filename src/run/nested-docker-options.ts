// run/nested-docker-options.ts: what nested Docker needs on this machine, or why it cannot run here. Starts nothing.
import { join } from 'node:path';
import { AgsError } from '../protocol/errors.ts';
import { DOCKER_HUB } from '../protocol/network.ts';
import type { EffectiveConfig } from '../config/effective.ts';
import type { Engine } from '../sandbox/engine/engine.ts';
import { findEngine } from '../sandbox/engine/find-engine.ts';
import { findProgram, programMissing } from '../sandbox/programs.ts';
import { ENGINE_ENV, nestedEngineArgv, REGISTRY_PORT } from '../sandbox/nested/engine-args.ts';
import { findNestedPrograms, type NestedOptions } from '../sandbox/nested/nested-engine.ts';
import { seccompArch } from '../sandbox/spec/seccomp.ts';
import type { HostContext } from './host-context.ts';

/** Throws if something is missing on this machine. */
export function nestedOptions(
  context: HostContext,
  { docker, limits, network }: Pick<EffectiveConfig, 'docker' | 'limits' | 'network'>,
  id: string,
): Omit<NestedOptions, 'onListener' | 'onPorts' | 'trust'> {
  const engine = outerEngine(context);
  const perl = findProgram('perl');
  const arch = seccompArch(context.nodeArch);
  if (engine === null || arch === null)
    throw new AgsError('backend.unavailable', `Nested Docker does not work on ${context.nodeArch}.`);
  if (perl === null) throw programMissing(['perl']);
  return {
    engine,
    perl,
    arch,
    dir: nestedDir(context, id),
    name: `ags-${id}-${process.pid}-${Date.now().toString(36)}d`,
    runMark: id,
    limits,
    tmpBytes: limits.tmpBytes,
    gateway: network.mode !== 'off',
    argv: nestedEngineArgv(findNestedPrograms(), [
      `--registry-mirror=http://127.0.0.1:${REGISTRY_PORT}`,
      // The nested daemon reaches the image cache on loopback without TLS; the cache uses TLS to the registries.
      ...[...registriesOf(docker.registries).keys()]
        .filter((name) => name !== DOCKER_HUB)
        .map((name) => `--insecure-registry=${name}`),
    ]),
    env: ENGINE_ENV,
  };
}

function outerEngine(context: HostContext): Engine | null {
  try {
    return findEngine('docker', context, true);
  } catch (error) {
    if (!(error instanceof AgsError)) throw error;
    throw new AgsError('backend.unavailable', `Nested Docker needs Docker on this machine. ${error.message}`, {
      hint: (error.hint ?? '').replace(/,? or use: --backend native$/, ', or leave "docker" out of the configuration'),
      cause: error,
    });
  }
}

/** Maps the prefix of image names to the registry's URL. The later of two entries wins. */
export function registriesOf(entries: readonly string[]): ReadonlyMap<string, string> {
  return new Map([
    [DOCKER_HUB, 'https://registry-1.docker.io'],
    ...entries.map((entry): [string, string] => {
      const [name = '', from] = entry.split('=');
      return [name, from ?? `https://${name}`];
    }),
  ]);
}

/** The directory where the nested Docker of a run and its user-namespace helper meet. */
export function nestedDir({ stateDir }: HostContext, id: string): string {
  return join(stateDir, `.inner-${id}-${process.pid}`);
}
