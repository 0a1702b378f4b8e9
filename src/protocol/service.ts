// protocol/service.ts: services beside a task, as data: what is configured, and what anybody can see of them while they run.

/** mysql is served by MariaDB, valkey by whichever of the two is there. `none` takes a service of an earlier layer away. */
export const SERVICE_PRESETS = [
  'postgres',
  'mariadb',
  'mysql',
  'redis',
  'valkey',
  'memcached',
  'nats',
  'rabbitmq',
  'minio',
  'mongodb',
  'elasticsearch',
  'opensearch',
  'qdrant',
  'redpanda',
  'mailpit',
  'none',
] as const;
export type ServicePresetName = Exclude<(typeof SERVICE_PRESETS)[number], 'none'>;

/** One service after all layers are merged. */
export interface ServiceConfig {
  /** Its name inside, and what messages call it. */
  readonly name: string;
  /** null: `run` or `image` says what it is. */
  readonly preset: ServicePresetName | null;
  /** Its programs are those of this image; null: of this machine. */
  readonly image: string | null;
  /** Variables of its own. */
  readonly environment: Readonly<Record<string, string>>;
  /** Directories of its own that it may write in and that do not last. */
  readonly scratch: readonly string[];
  /** For `sh -c`, or a program with its arguments. */
  readonly run: string | readonly string[] | null;
  readonly version: string | null;
  readonly database: string | null;
  readonly user: string | null;
  readonly password: string | null;
  /** Empty: those of the preset. */
  readonly ports: readonly number[];
  /** Files of the project. */
  readonly seed: readonly string[];
  /** Further variables for whoever uses it, with placeholders. */
  readonly env: Readonly<Record<string, string>>;
  readonly ready: {
    readonly port: number | null;
    readonly command: string | null;
    readonly timeoutSeconds: number;
  };
  readonly memoryBytes: number;
  readonly origin: string;
}

/** `stopped`: whoever ran it is not running. */
export const SERVICE_STATES = ['starting', 'healthy', 'failed', 'stopped'] as const;
export type ServiceState = (typeof SERVICE_STATES)[number];

/** What the file of a run says about each of its services. */
export interface ServiceStatus {
  readonly name: string;
  /** Its preset, "image", "command" or "compose". */
  readonly kind: string;
  readonly state: ServiceState;
  /** Where it is, inside. */
  readonly address: string;
  readonly ports: readonly number[];
  readonly url: string;
  /** What opens it from inside, as argv; null: nothing that we know of. */
  readonly client: readonly string[] | null;
  /** What its data stands on; null: on nothing. */
  readonly layer: string | null;
  /** Why it failed, in words, and its last lines. */
  readonly why: string | null;
  readonly lines: readonly string[];
}
