// results/risky-patterns.ts: which further paths a project's configuration names as risky.
import { AgsError } from '../protocol/errors.ts';
import { loadConfig } from '../config/load.ts';
import { configInput, type World } from '../run/host-context.ts';

/** The project's own configuration may have changed or be unapproved since; it can only add to the list. */
export async function riskyPatterns(world: World, project: string): Promise<readonly string[]> {
  try {
    const config = await loadConfig(configInput(world, project));
    return config.risky;
  } catch (error) {
    if (error instanceof AgsError && error.code === 'config.untrusted') return [];
    throw error;
  }
}
