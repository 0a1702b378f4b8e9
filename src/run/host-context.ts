// run/host-context.ts: what every command knows about its caller. Created once in cli/ and passed down; nothing below reads
// process.env.
import type { BackendChoice, ConfigInput } from '../config/effective.ts';
import { findProgram } from '../sandbox/programs.ts';
import { unusedId } from '../config/unused-id.ts';
import { inspectHost, type NativeHost } from '../sandbox/checks/host.ts';

export interface HostContext {
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
  /** The command that starts ags again: Node and the script. */
  readonly self: readonly string[];
  now(): Date;
}

/** The user of root's sandboxes, unless the configuration names one; undefined: the usual one. */
export function freeUser({ uid }: Pick<HostContext, 'uid'>): number | undefined {
  return uid === 0 ? unusedId() : undefined;
}

/** The inputs for reading the configuration of this caller and a project. */
export function configInput(context: HostContext, projectDir: string, flags: ConfigInput['flags'] = {}): ConfigInput {
  return {
    home: context.home,
    userConfigFile: context.configFile,
    projectDir,
    stateDir: context.stateDir,
    cacheDir: context.cacheDir,
    flags,
    allowVariable: context.env['AGS_ALLOW'],
    memoryTotalBytes: context.memoryBytes,
    freeUser: freeUser(context),
  };
}

/** The user that a sandbox runs as and that owns its directories. */
export function sandboxUser(
  { uid, gid }: Pick<HostContext, 'uid' | 'gid'>,
  config: { readonly user: number },
): { uid: number; gid: number } {
  return uid === 0 ? { uid: config.user, gid: config.user } : { uid, gid };
}

/** Facts about this machine. */
export async function inspectMachine(
  context: HostContext,
  more: { runtimeDir?: string; programDirs?: readonly string[] } = {},
  backend: BackendChoice = 'native',
): Promise<NativeHost> {
  const engine = await chooseEngine(context, backend);
  return inspectHost({
    platform: context.platform,
    nodeArch: context.nodeArch,
    uid: context.uid,
    cacheDir: context.cacheDir,
    runtimeDir: context.env['XDG_RUNTIME_DIR'] ?? `/run/user/${context.uid}`,
    memoryBytes: context.memoryBytes,
    kernel: context.kernel,
    engine,
    ...more,
  });
}

/** 'auto' chooses an engine only if there is no bubblewrap, and then the first that this user may use. */
async function chooseEngine(context: HostContext, backend: BackendChoice): Promise<NativeHost['engine']> {
  if (backend === 'native' || (backend === 'auto' && findProgram('bwrap') !== null)) return null;
  const { findAnyEngine, findEngine } = await import('../sandbox/engine/find-engine.ts');
  if (backend !== 'auto') return findAnyEngine(backend, context, true);
  return findEngine('docker', context, false) ?? findEngine('podman', context, false);
}
