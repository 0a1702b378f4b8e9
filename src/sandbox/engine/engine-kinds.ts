// sandbox/engine/engine-kinds.ts: in what Docker and Podman differ, as data. Whoever drives an engine asks here and nowhere else.
export const ENGINE_NAMES = ['docker', 'podman'] as const;
export type EngineName = (typeof ENGINE_NAMES)[number];

export interface EngineKind {
  readonly title: string;
  /** The packages that have it, as Debian calls them. */
  readonly packages: readonly string[];
  /** Variables of the caller's by which an engine is told where and who it is. */
  readonly variables: RegExp;
  /** Variables that lead to an engine on another machine, where that is not possible. */
  readonly remote: readonly string[];
  /**
   * A daemon builds in namespaces of its own. Without one the command line itself does: so it is started in a mount namespace
   * in which everything is mounted already, and in a network namespace that has doors, which both go with the container.
   */
  readonly daemon: boolean;
  /** Options of every container. */
  readonly always: readonly string[];
  readonly bindOptions: readonly string[];
  /** Unless told otherwise, it gives a container more processes and files than this machine may grant. */
  readonly raisesLimits: boolean;
  /** A name server that nobody is, where the engine would otherwise put one of the machine's. */
  readonly ownResolver: readonly string[];
  /** Takes variables that an image sets away from the first process. */
  readonly withoutVariables: (names: readonly string[]) => readonly string[];
  /** Options by which it makes no volumes that an image asks for; none: each is covered by an empty directory. */
  readonly withoutVolumes: readonly string[] | null;
  /** Programs that it can run containers with, if they are installed; null: it says so itself. */
  readonly runtimes: readonly string[] | null;
  /** A label, as JSON, in what `ps --format` is given. */
  readonly label: (name: string) => string;
}

/** What an engine's client fills in by itself. */
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
    // The client would put what its own settings say about proxies into every container, with their passwords. A name alone takes it away.
    always: PROXY_VARIABLES.flatMap((name) => ['--env', name]),
    // It knows none.
    bindOptions: [],
    raisesLimits: false,
    ownResolver: ['--dns', '127.0.0.1'],
    // A name alone takes a variable away, unless the client has one of this name itself.
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
    // By itself it would mount places to write in (/run, /tmp, /var/tmp), and write users into /etc.
    always: ['--read-only-tmpfs=false', '--passwd=false'],
    bindOptions: ['nosuid', 'nodev'],
    raisesLimits: true,
    // Refused with --network none, with which there is no name server anyway.
    ownResolver: [],
    withoutVariables: () => ['--unsetenv-all'],
    withoutVolumes: ['--image-volume', 'ignore'],
    runtimes: ['crun', 'kata-runtime', 'krun', 'runc', 'runsc', 'youki'],
    label: (name) => `{{json (index .Labels "${name}")}}`,
  },
};
