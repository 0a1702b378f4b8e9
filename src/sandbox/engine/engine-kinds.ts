// sandbox/engine/engine-kinds.ts: the differences between Docker and Podman, as data. All code that drives an engine reads them here.
export const ENGINE_NAMES = ['docker', 'podman'] as const;
export type EngineName = (typeof ENGINE_NAMES)[number];

export interface EngineKind {
  readonly title: string;
  /** Its packages, by their Debian names. */
  readonly packages: readonly string[];
  /** Variables of the caller that configure the engine's client. */
  readonly variables: RegExp;
  /** Variables that select a remote engine where ags does not support one. */
  readonly remote: readonly string[];
  /**
   * A daemon creates containers in its own namespaces. Without a daemon the client does, so ags starts the client in a mount namespace
   * where everything is mounted already, and in a network namespace with listeners; both end with the container.
   */
  readonly daemon: boolean;
  /** Options for every container. */
  readonly always: readonly string[];
  readonly bindOptions: readonly string[];
  /** By default it requests more processes and files than this machine may grant. */
  readonly raisesLimits: boolean;
  /** An unused name server address, where the engine would otherwise insert one of the machine's. */
  readonly ownResolver: readonly string[];
  /** Options that keep the image's variables from the first process. */
  readonly withoutVariables: (names: readonly string[]) => readonly string[];
  /** Options that suppress the image's volumes; null: each is covered by an empty directory. */
  readonly withoutVolumes: readonly string[] | null;
  /** Known runtimes, used if installed; null: the engine lists them itself. */
  readonly runtimes: readonly string[] | null;
  /** A label as JSON, for `ps --format`. */
  readonly label: (name: string) => string;
}

/** Variables that an engine's client adds by itself. */
export const PROXY_VARIABLES: readonly string[] = ['HTTP', 'HTTPS', 'FTP', 'NO', 'ALL'].flatMap((kind) => [
  `${kind}_PROXY`,
  `${kind.toLowerCase()}_proxy`,
]);

export const ENGINE_KINDS: Readonly<Record<EngineName, EngineKind>> = {
  docker: {
    title: 'Docker',
    packages: ['docker.io'],
    variables: /^(HOME|DOCKER_.*)$/,
    remote: [],
    daemon: true,
    // The client would put the proxies of its own settings, with passwords, into every container. A bare name removes the variable.
    always: PROXY_VARIABLES.flatMap((name) => ['--env', name]),
    bindOptions: [],
    raisesLimits: false,
    ownResolver: ['--dns', '127.0.0.1'],
    // A bare name removes the variable, unless the client's environment has it.
    withoutVariables: (names) =>
      names.flatMap((name) => ['--env', /^(HOME|PATH|DOCKER_.*)$/.test(name) ? `${name}=` : name]),
    withoutVolumes: null,
    runtimes: null,
    label: (name) => `{{json (.Label "${name}")}}`,
  },
  podman: {
    title: 'Podman',
    packages: ['podman', 'uidmap'],
    variables: /^(HOME|TMPDIR|XDG_(RUNTIME_DIR|CONFIG_HOME|DATA_HOME)|CONTAINERS_.*|STORAGE_.*)$/,
    remote: ['CONTAINER_HOST', 'CONTAINER_CONNECTION'],
    daemon: false,
    // By default Podman mounts writable directories (/run, /tmp, /var/tmp) and adds users to /etc.
    always: ['--read-only-tmpfs=false', '--passwd=false'],
    bindOptions: ['nosuid', 'nodev'],
    raisesLimits: true,
    // Podman refuses it with --network none, which has no name server anyway.
    ownResolver: [],
    withoutVariables: () => ['--unsetenv-all'],
    withoutVolumes: ['--image-volume', 'ignore'],
    runtimes: ['crun', 'kata-runtime', 'krun', 'runc', 'runsc', 'youki'],
    label: (name) => `{{json (index .Labels "${name}")}}`,
  },
};
