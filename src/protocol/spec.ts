// protocol/spec.ts: all that a backend needs to know to build one sandbox. A plain value: it can be printed, compared
// and tested without starting anything.
// Invariant: what is not in the spec does not exist inside.

export type HostPath = string & { readonly __host: true };
export type SandboxPath = string & { readonly __sandbox: true };
export const hostPath = (path: string): HostPath => path as HostPath;
export const sandboxPath = (path: string): SandboxPath => path as SandboxPath;

/** Mounts are made in order; a later one covers an earlier one. */
export type Mount =
  | {
      readonly kind: 'bind';
      readonly from: HostPath;
      readonly to: SandboxPath;
      readonly writable: boolean;
      /**
       * A directory that is not writable is read through an overlay, so that sockets and pipes in it are dead. `may`: as it is
       * where that cannot be done, because the user asked for it by name; `no`: as it is.
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
      /** Of a binary file each character is a byte. */
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
      /** The project itself, or layers that stand for it. */
      readonly layers: readonly Layer[];
      /** Paths relative to the project that do not exist inside: secrets and sockets. */
      readonly hidden: readonly string[];
      readonly upper: HostPath;
      readonly work: HostPath;
    }
  /** The same layers with the upper as the topmost read-only one: what capture looks at. */
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

/** Device and inode ("64768,131"). A path can be made to lead elsewhere after it was looked at; what is mounted must be this. */
export type DirectoryIdentity = string;

export interface Limits {
  /** Processes and threads. */
  readonly processes: number;
  /** All processes together. */
  readonly memoryBytes: number;
  readonly openFiles: number;
  readonly fileBytes: number;
  /** What the sandbox may write in workspace and home together. */
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

/**
 * What the sandbox sees of a network is its own loopback, always. With a gateway there are doors in it: sockets that somebody
 * outside listens at.
 */
export type SandboxNetwork =
  | { readonly kind: 'loopback' }
  | {
      readonly kind: 'gateway';
      readonly doors: readonly Door[];
      /** Connections into the sandbox can be asked for later (published ports). */
      readonly reach: boolean;
    };

export interface Door {
  readonly name: string;
  readonly protocol: 'tcp' | 'udp';
  /** IPv4, four numbers. */
  readonly address: string;
  /** Below 1024 for UDP. */
  readonly port: number;
}

/** Whose programs a sandbox has. */
export type SandboxRoot =
  /** Those of this machine, as mounts show them. */
  | { readonly kind: 'host' }
  /** Those of an image of the engine. It is read-only, and nothing that it says about itself counts. */
  | {
      readonly kind: 'image';
      /** As the user named it. */
      readonly reference: string;
      /** "sha256:…", which stands for exactly this image. */
      readonly id: string;
      /** Names of variables that the image sets: the first process must not have them. */
      readonly variables: readonly string[];
      /** Places that an engine would make writable by itself. */
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
  /** Of the engine; null: the one that it takes by itself. The native backend has none. */
  readonly runtime: string | null;
}
