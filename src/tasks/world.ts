// tasks/world.ts: what every verb knows about its caller. Made once in cli/, handed down; nothing below reads process.env.
import type { ConfigInput } from '../config/effective.ts';
import { inspectHost, type NativeHost } from '../sandbox/host.ts';

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

/** The machine under this caller's feet. */
export function inspectWorld(
  world: World,
  more: { runtimeDir?: string; programDirs?: readonly string[] } = {},
): Promise<NativeHost> {
  return inspectHost({
    platform: world.platform,
    nodeArch: world.nodeArch,
    uid: world.uid,
    cacheDir: world.cacheDir,
    runtimeDir: world.env['XDG_RUNTIME_DIR'] ?? `/run/user/${world.uid}`,
    memoryBytes: world.memoryBytes,
    kernel: world.kernel,
    ...more,
  });
}
