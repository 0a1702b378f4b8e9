// config/effective.ts: the configuration after all layers are merged: what the rest of ags works with.
// Invariant: every value is checked and complete, and `origins` says where each one came from.
import type { HookPolicy } from '../protocol/hook.ts';
import type { NetworkPolicy, SecretRule } from '../protocol/network.ts';
import type { ServiceConfig } from '../protocol/service.ts';
import type { KernelRules, Limits } from '../protocol/spec.ts';

export type BackendChoice = 'auto' | 'native' | 'docker' | 'podman';
/** Which image a sandbox stands on. */
export type ImageChoice =
  | { readonly kind: 'reference'; readonly reference: string }
  /** Relative to the project. */
  | { readonly kind: 'dockerfile'; readonly path: string }
  | { readonly kind: 'devcontainer' };

export type WorkspaceChoice = 'auto' | 'overlay' | 'copy';

export interface ExtraMount {
  /** Absolute. */
  readonly path: string;
  /** A built-in place: shown where it exists. Any other that does not exist is an error. */
  readonly optional: boolean;
}

/** What holds for the agents of `ags start` unless a flag says otherwise. null: not said. */
export interface TaskDefaults {
  readonly agent: string | null;
  readonly model: string | null;
  readonly parallel: number | null;
  readonly seconds: number | null;
  readonly costMicros: number | null;
  readonly turns: number | null;
}

export interface EffectiveConfig {
  /** The uid inside when the caller is root. Never 0. */
  readonly user: number;
  readonly backend: BackendChoice;
  /** null: the programs of this machine. */
  readonly image: ImageChoice | null;
  /** null: the one that the engine takes by itself. */
  readonly runtime: string | null;
  readonly docker: DockerConfig;
  /** null: none are brought up. Otherwise there is an engine inside. */
  readonly compose: ComposeConfig | null;
  readonly workspace: WorkspaceChoice;
  /** Whether `toolDirs` starts from the built-in list. */
  readonly toolDefaults: boolean;
  /** Relative to the home; directories or single files; shown read-only where they exist. */
  readonly toolDirs: readonly string[];
  readonly mounts: readonly ExtraMount[];
  /** Names below /etc; a part of one may have `*` in it (see `listEtc`). */
  readonly etc: readonly string[];
  /** Names, or prefixes that end in `_*`. */
  readonly envPass: readonly string[];
  /** Names whose value says where a tool is: passed only if every path in it is visible inside. */
  readonly pathEnv: readonly string[];
  readonly envSet: Readonly<Record<string, string>>;
  /** For `compileHidden(hide, reveal)`. */
  readonly hide: readonly string[];
  readonly reveal: readonly string[];
  readonly limits: Limits;
  readonly kernel: KernelRules;
  /** `default` among its presets stands for the built-in default list (see presets.ts). */
  readonly network: NetworkPolicy;
  readonly secrets: readonly SecretRule[];
  readonly setup: SetupConfig;
  /** In the order in which they are first named. */
  readonly services: readonly ServiceConfig[];
  readonly checks: ChecksConfig;
  /** Nothing is merged unless its checks have passed. */
  readonly mergeCheck: boolean;
  readonly hooks: HookPolicy;
  readonly tasks: TaskDefaults;
  /** Patterns of further paths that the review treats as running on this machine. */
  readonly risky: readonly string[];
  /**
   * Where each value came from: "built-in", "/home/me/.config/ags/config.yaml:12", "ags.yaml:7" or "--limit memory".
   * The keys are those of the file (`limits.memory`, `env.set.CI`), an item of a list by its place in the
   * effective list (`hide[70]`, `tools[120]`). An item without an entry is built-in.
   */
  readonly origins: Readonly<Record<string, string>>;
  /** The files that were read, in the order of the layers. */
  readonly files: readonly string[];
}

/** An engine inside, of the task's own. */
export interface DockerConfig {
  readonly enabled: boolean;
  /** "ghcr.io", or with where it is asked instead: "docker.io=https://mirror.corp". docker.io is always one. */
  readonly registries: readonly string[];
}

/** The project's own compose files. */
export interface ComposeConfig {
  /** Relative to the project. Empty: the usual names. */
  readonly files: readonly string[];
  /** The user's own, in the checkout, where it exists. */
  readonly override: string;
  readonly profiles: readonly string[];
  /** Empty: all. */
  readonly services: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** null: no limit. */
  readonly timeoutSeconds: number | null;
}

export interface SetupConfig {
  readonly run: readonly string[];
  /** null: the usual lockfiles and manifests. */
  readonly inputs: readonly string[] | null;
  /** null: no limit. */
  readonly timeoutSeconds: number | null;
}

export interface ChecksConfig {
  readonly run: readonly Check[];
  /** null: no limit. */
  readonly timeoutSeconds: number | null;
}

export interface Check {
  readonly name: string;
  /** For `sh -c`. */
  readonly run: string;
}

/** What flags of one command may set, as the user typed it. */
export interface ConfigFlags {
  readonly backend?: string;
  readonly image?: string;
  readonly runtime?: string;
  readonly docker?: boolean;
  readonly compose?: boolean;
  readonly workspace?: string;
  readonly mounts?: readonly string[];
  readonly reveal?: readonly string[];
  readonly envPass?: readonly string[];
  readonly envSet?: Readonly<Record<string, string>>;
  /** By the names of `limits` in the file: { memory: '4g', time: '2h' }. */
  readonly limits?: Readonly<Record<string, string>>;
  /** on, off or record. */
  readonly network?: string;
  readonly allow?: readonly string[];
  readonly deny?: readonly string[];
  readonly tcp?: readonly string[];
  readonly publish?: readonly string[];
  /** Only these; an empty list: none. */
  readonly services?: readonly string[];
}

export interface ConfigInput {
  readonly home: string;
  readonly userConfigFile: string;
  readonly projectDir: string;
  readonly stateDir: string;
  readonly cacheDir: string;
  readonly flags: ConfigFlags;
  /** What a share such as "50%" is a share of. */
  readonly memoryTotalBytes: number;
}
