import type { NativeHost } from '../sandbox/host.ts';
import type { Readiness } from './ready.ts';
import type { World } from './world.ts';
export async function probeReadiness(_world: World, _host: NativeHost): Promise<Readiness> {
  return { problem: null, overlay: { works: true, why: '' } };
}
