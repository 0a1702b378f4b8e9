// run/host-context.ts: what every verb knows about its caller. Made once in cli/, handed down; nothing below reads process.env.
import type { BackendChoice, ConfigInput } from '../config/effective.ts';
import { findProgram, inspectHost, type NativeHost } from '../sandbox/checks/host.ts';

export interface World {
  readonly cwd: string;
  readonly home: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly uid: number;
  readonly gid: number;
  readonly userName: string;
  readonly shell: string;
  readonly stateDir: string;
  readonly cacheDir: string;
  /** Programs that ags has installed. */
  readonly dataDir: string;
  readonly configFile: string;
  readonly memoryBytes: number;
  readonly kernel: string;
  readonly platform: string;
  readonly nodeArch: string;
  readonly pid: number;
  /** What starts ags again: Node and the script. */
  readonly self: readonly string[];
  now(): Date;
}

/** For whoever reads what this caller and a project have configured. */
export function configInput(world: World, projectDir: string, flags: ConfigInput['flags'] = {}): ConfigInput {
  return {
    home: world.home,
    userConfigFile: world.configFile,
    projectDir,
    stateDir: world.stateDir,
    cacheDir: world.cacheDir,
    flags,
    memoryTotalBytes: world.memoryBytes,
  };
}

/** Who a sandbox is run as, and whose its directories are. */
export function sandboxUser(
  { uid, gid }: Pick<World, 'uid' | 'gid'>,
  config: { readonly user: number },
): { uid: number; gid: number } {
  return uid === 0 ? { uid: config.user, gid: config.user } : { uid, gid };
}

/** The machine under this caller's feet. */
export async function inspectWorld(
  world: World,
  more: { runtimeDir?: string; programDirs?: readonly string[] } = {},
  backend: BackendChoice = 'native',
): Promise<NativeHost> {
  const engine = await chooseEngine(world, backend);
  return inspectHost({
    platform: world.platform,
    nodeArch: world.nodeArch,
    uid: world.uid,
    cacheDir: world.cacheDir,
    runtimeDir: world.env['XDG_RUNTIME_DIR'] ?? `/run/user/${world.uid}`,
    memoryBytes: world.memoryBytes,
    kernel: world.kernel,
    engine,
    ...more,
  });
}

/** By itself an engine is chosen only where there is no bubblewrap; then the first that this user may use. */
async function chooseEngine(world: World, backend: BackendChoice): Promise<NativeHost['engine']> {
  if (backend === 'native' || (backend === 'auto' && findProgram('bwrap') !== null)) return null;
  const { findAnyEngine, findEngine } = await import('../sandbox/engine/find-engine.ts');
  if (backend !== 'auto') return findAnyEngine(backend, world, true);
  return findEngine('docker', world, false) ?? findEngine('podman', world, false);
}
