// protocol/service.ts: services beside a task, as data: their configuration, and their state while they run.

/** MariaDB serves mysql; valkey uses Valkey or Redis, whichever is installed. `none` removes a service of an earlier layer. */
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
  /** Its host name inside, also used in messages. */
  readonly name: string;
  /** null: `run` or `image` defines it. */
  readonly preset: ServicePresetName | null;
  /** The image that provides its programs; null: this machine. */
  readonly image: string | null;
  /** Variables of the service itself. */
  readonly environment: Readonly<Record<string, string>>;
  /** Writable directories that start empty each time. */
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
  /** Further variables for programs that use it, with placeholders. */
  readonly env: Readonly<Record<string, string>>;
  readonly ready: {
    readonly port: number | null;
    readonly command: string | null;
    readonly timeoutSeconds: number;
  };
  readonly memoryBytes: number;
  readonly origin: string;
}

/** `stopped`: its task is not running. */
export const SERVICE_STATES = ['starting', 'healthy', 'failed', 'stopped'] as const;
export type ServiceState = (typeof SERVICE_STATES)[number];

/** One service in the services file of a run. */
export interface ServiceStatus {
  readonly name: string;
  /** Its preset, "image", "command" or "compose". */
  readonly kind: string;
  readonly state: ServiceState;
  /** Its address inside. */
  readonly address: string;
  readonly ports: readonly number[];
  readonly url: string;
  /** The command that opens a client inside, as argv; null: none is known. */
  readonly client: readonly string[] | null;
  /** The layer below its data; null: none. */
  readonly layer: string | null;
  /** Why it failed, in words, with its last lines. */
  readonly why: string | null;
  readonly lines: readonly string[];
}
