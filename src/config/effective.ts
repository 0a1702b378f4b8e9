// config/effective.ts: the configuration after all layers are merged; the rest of ags uses only this.
// Invariant: every value is checked and complete, and `origins` names the source of each.
import type { HookPolicy } from '../protocol/hook.ts';
import type { ModelEndpoint, NetworkPolicy, SecretRule } from '../protocol/network.ts';
import type { ServiceConfig } from '../protocol/service.ts';
import type { KernelRules, Limits } from '../protocol/spec.ts';

export type BackendChoice = 'auto' | 'native' | 'docker' | 'podman';
/** The image that provides a sandbox's programs. */
export type ImageChoice =
  | { readonly kind: 'reference'; readonly reference: string }
  /** Relative to the project. */
  | { readonly kind: 'dockerfile'; readonly path: string }
  | { readonly kind: 'devcontainer' };

/** task: empty for each task. Otherwise kept, for each project unless it is shared. */
export type HomeChoice =
  | { readonly keep: 'task' | 'project' }
  | { readonly keep: 'directory'; readonly path: string; readonly shared: boolean };

export type WorkspaceChoice = 'auto' | 'overlay' | 'copy';

export interface ExtraMount {
  /** Absolute. */
  readonly path: string;
  /** A built-in mount, shown where it exists. Any other missing path is an error. */
  readonly optional: boolean;
}

/** Defaults for the agents of `ags start`; flags override them. null: not configured. */
export interface TaskDefaults {
  readonly agent: string | null;
  readonly model: string | null;
  readonly parallel: number | null;
  readonly seconds: number | null;
  readonly costMicros: number | null;
  readonly turns: number | null;
  readonly tokens: number | null;
  /** All of them hold. */
  readonly budgets: readonly Budget[];
}

/** Limits what tasks cost together. */
export interface Budget {
  readonly costMicros: number;
  /** A calendar day or month. */
  readonly per: 'day' | 'month';
  /** Whose tasks count: all of this user, or those of the project whose file says so. */
  readonly of: 'user' | 'project';
  readonly origin: string;
}

export interface PriceConfig {
  readonly input: number;
  readonly output: number;
  readonly cached?: number | undefined;
  readonly cacheWrite?: number | undefined;
}

/** For one agent. */
export interface AgentSettings {
  /** null: the usual provider. */
  readonly endpoint: ModelEndpoint | null;
  readonly model: string | null;
  /** The user's own settings that it sees, relative to the home. */
  readonly settings: readonly { readonly path: string; readonly origin: string }[];
}

export interface EffectiveConfig {
  /** The uid inside when the caller is root. Never 0. */
  readonly user: number;
  readonly backend: BackendChoice;
  /** null: no image; the programs of this machine. */
  readonly image: ImageChoice | null;
  /** null: the default of the engine. */
  readonly runtime: string | null;
  readonly docker: DockerConfig;
  /** null: compose is off. Otherwise nested Docker is on. */
  readonly compose: ComposeConfig | null;
  readonly workspace: WorkspaceChoice;
  readonly home: HomeChoice;
  /** Whether `toolDirs` starts from the built-in list. */
  readonly toolDefaults: boolean;
  /** Relative to the home; directories or single files; shown read-only where they exist. */
  readonly toolDirs: readonly string[];
  readonly mounts: readonly ExtraMount[];
  /** Names below /etc; a part of one may have `*` in it (see `listEtc`). */
  readonly etc: readonly string[];
  /** Names, or prefixes that end in `_*`. */
  readonly envPass: readonly string[];
  /** Variables with locations of tools: passed only if every path in them is visible inside. */
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
  /** In the order of their first mention. */
  readonly services: readonly ServiceConfig[];
  readonly checks: ChecksConfig;
  /** Merges need passed checks. */
  readonly mergeCheck: boolean;
  readonly hooks: HookPolicy;
  readonly tasks: TaskDefaults;
  /** By the name of the agent; `command`: command lines. */
  readonly agents: Readonly<Record<string, AgentSettings>>;
  /** The user's own prices of models, in dollars for a million tokens. */
  readonly prices: Readonly<Record<string, PriceConfig>>;
  /** Patterns of further paths that a review treats as running on this machine. */
  readonly risky: readonly string[];
  /**
   * The source of each value: "built-in", "/home/me/.config/ags/config.yaml:12", "ags.yaml:7" or "--limit memory".
   * Keys are those of the file (`limits.memory`, `env.set.CI`); a list item has its index in the
   * effective list (`hide[70]`, `tools[120]`). An item without an entry is built-in.
   */
  readonly origins: Readonly<Record<string, string>>;
  /** The files that were read, in layer order. */
  readonly files: readonly string[];
}

/** Nested Docker. */
export interface DockerConfig {
  readonly enabled: boolean;
  /** "ghcr.io", or with a mirror: "docker.io=https://mirror.corp". docker.io is always included. */
  readonly registries: readonly string[];
}

/** The project's own compose files. */
export interface ComposeConfig {
  /** Relative to the project. Empty: the default names. */
  readonly files: readonly string[];
  /** The user's own file in the checkout, where it exists. */
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
  /** null: the built-in lockfiles and manifests. */
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

/** Flags of one command, as the user typed them. */
export interface ConfigFlags {
  readonly backend?: string;
  readonly image?: string;
  readonly runtime?: string;
  readonly docker?: boolean;
  readonly compose?: boolean;
  readonly workspace?: string;
  readonly home?: string;
  readonly mounts?: readonly string[];
  readonly reveal?: readonly string[];
  readonly envPass?: readonly string[];
  readonly envSet?: Readonly<Record<string, string>>;
  /** By their names in the file: { memory: '4g', time: '2h' }. */
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
  /** The variable AGS_ALLOW of the user's environment. */
  readonly allowVariable?: string | undefined;
  /** The whole for a share such as "50%". */
  readonly memoryTotalBytes: number;
  /** The default of `user`, if the usual ID is that of an account of this machine. */
  readonly freeUser?: number | undefined;
}
