// protocol/spec.ts: everything a backend needs to build one sandbox, as a plain value that can be printed, compared and tested
// without starting anything.
// Invariant: a path, variable or listener that the spec does not name does not exist inside.

export type HostPath = string & { readonly __host: true };
export type SandboxPath = string & { readonly __sandbox: true };
export const hostPath = (path: string): HostPath => path as HostPath;
export const sandboxPath = (path: string): SandboxPath => path as SandboxPath;

/** Backends mount in this order; a later mount covers an earlier one. */
export type Mount =
  | {
      readonly kind: 'bind';
      readonly from: HostPath;
      readonly to: SandboxPath;
      readonly writable: boolean;
      /**
       * A read-only directory is mounted through an overlay, which makes sockets and pipes in it useless. `may`: mount it directly
       * where an overlay is impossible, because the user named it. `no`: always mount it directly.
       */
      readonly veil?: 'may' | 'no';
      readonly why: string;
    }
  | { readonly kind: 'symlink'; readonly target: string; readonly to: SandboxPath; readonly why: string }
  | {
      readonly kind: 'tmpfs';
      readonly to: SandboxPath;
      readonly bytes: number;
      readonly mode: string;
      readonly why: string;
    }
  | { readonly kind: 'dir'; readonly to: SandboxPath; readonly mode: string; readonly why: string }
  | { readonly kind: 'proc' | 'dev'; readonly to: SandboxPath; readonly why: string }
  | {
      readonly kind: 'file';
      /** In a binary file each character is one byte. */
      readonly content: string;
      readonly binary?: boolean;
      readonly to: SandboxPath;
      readonly why: string;
    }
  | { readonly kind: 'workspace'; readonly workspace: WorkspaceMount; readonly to: SandboxPath; readonly why: string };

/** The project's files, copy-on-write. `layers` are read-only, first one on top; `upper` takes every write. */
export type WorkspaceMount =
  | {
      readonly kind: 'overlay';
      /** The project itself, or layers in its place. */
      readonly layers: readonly Layer[];
      /** Paths relative to the project that do not exist inside: secrets and sockets. */
      readonly hidden: readonly string[];
      readonly upper: HostPath;
      readonly work: HostPath;
    }
  /** The same layers with the upper on top, all read-only: capture reads this. */
  | {
      readonly kind: 'frozen-overlay';
      readonly layers: readonly Layer[];
      readonly hidden: readonly string[];
      readonly upper: HostPath;
    }
  | { readonly kind: 'copy'; readonly directory: HostPath; readonly writable: boolean };

export interface Layer {
  readonly path: HostPath;
  readonly identity: DirectoryIdentity;
}

/** Device and inode ("64768,131"). A path can be redirected after its inspection; backends mount only this directory. */
export type DirectoryIdentity = string;

export interface Limits {
  /** Processes and threads. */
  readonly processes: number;
  /** All processes together. */
  readonly memoryBytes: number;
  readonly openFiles: number;
  readonly fileBytes: number;
  /** Writes to workspace and home together. */
  readonly diskBytes: number;
  readonly tmpBytes: number;
  /** CPU seconds of any one process; null: no limit. */
  readonly cpuSeconds: number | null;
  /** Wall clock of the whole sandbox; null: no limit. */
  readonly wallSeconds: number | null;
  /** How many processors all processes together may keep busy, 1.5 for example; null: no limit. */
  readonly cpus: number | null;
}

export interface KernelRules {
  /** Let debuggers work inside (only ever on the sandbox's own processes). */
  readonly ptrace: boolean;
  /** Unix sockets inside; no socket of the host is visible either way. */
  readonly unixSockets: boolean;
}

/** A sandbox has only its own loopback. A gateway adds listeners to it, which the runner answers. */
export type SandboxNetwork =
  | { readonly kind: 'loopback' }
  | {
      readonly kind: 'gateway';
      readonly listeners: readonly Listener[];
      /** The runner may open connections into the sandbox later (published ports). */
      readonly reach: boolean;
    };

export interface Listener {
  readonly name: string;
  readonly protocol: 'tcp' | 'udp';
  /** IPv4 in dotted form. */
  readonly address: string;
  /** Below 1024 for UDP. */
  readonly port: number;
}

/** The source of a sandbox's programs. */
export type SandboxRoot =
  /** Programs of the host, as the mounts show them. */
  | { readonly kind: 'host' }
  /** Programs of an engine's image. It is read-only, and its own settings are ignored. */
  | {
      readonly kind: 'image';
      /** The name that the user gave. */
      readonly reference: string;
      /** "sha256:…", the ID of exactly this image. */
      readonly id: string;
      /** Names of variables that the image sets; the first process must not inherit them. */
      readonly variables: readonly string[];
      /** Paths that an engine would make writable on its own. */
      readonly volumes: readonly string[];
    };

export const HOST_ROOT: SandboxRoot = { kind: 'host' };

export interface SandboxSpec {
  readonly hostname: string;
  readonly root: SandboxRoot;
  /** The identity inside, and outside for a caller that is not root. Never 0. */
  readonly user: { readonly uid: number; readonly gid: number; readonly name: string };
  readonly mounts: readonly Mount[];
  readonly env: Readonly<Record<string, string>>;
  readonly workdir: SandboxPath;
  readonly network: SandboxNetwork;
  readonly limits: Limits;
  readonly kernel: KernelRules;
  /** A runtime of the engine; null: its default. The native backend has none. */
  readonly runtime: string | null;
}
