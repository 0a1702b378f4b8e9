// results/risky-patterns.ts: reads the additional paths that a project's configuration names as risky.
import { AgsError } from '../protocol/errors.ts';
import { loadConfig } from '../config/load.ts';
import { configInput, type HostContext } from '../run/host-context.ts';

/** The project's configuration may have changed or lost its approval since; it can only add to the list. */
export async function riskyPatterns(context: HostContext, project: string): Promise<readonly string[]> {
  try {
    const config = await loadConfig(configInput(context, project));
    return config.risky;
  } catch (error) {
    if (error instanceof AgsError && error.code === 'config.untrusted') return [];
    throw error;
  }
}
