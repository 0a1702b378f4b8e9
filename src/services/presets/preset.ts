// services/presets/preset.ts: a service that ags knows: how to find, initialise, start, check and connect to it. Data and `sh` scripts.
//
// All scripts run inside the service's own sandbox, with these variables: DATA (its only persistent directory), PORT, SERVICE_USER,
// SERVICE_PASSWORD, SERVICE_DATABASE. No value is ever inserted into the text of a script.
// Invariant: a service listens only on 127.0.0.1 of its own network, and stores everything below $DATA.

export interface ServicePreset {
  readonly name: string;
  readonly title: string;
  /** Services of one kind share variables such as DATABASE_URL; the first of them gets these. */
  readonly kind: string;
  /** Required programs; each entry lists alternatives, and the first one found is used. */
  readonly programs: readonly (readonly string[])[];
  /** Directories searched besides PATH; `*` stands for a version, highest first. */
  readonly places: readonly string[];
  readonly install: string;
  /** The image to use in containers. */
  readonly image: string;
  /** `port` in the configuration changes the first one. */
  readonly ports: readonly number[];
  /** Default user; null: the service has no users (likewise for the database). */
  readonly user: string | null;
  readonly password: string | null;
  readonly database: string | null;
  /** Runs before the first start; null: not needed. */
  readonly init: string | null;
  readonly run: string;
  /** One check that succeeds when the service answers. null: ready when its first port accepts connections. */
  readonly ready: string | null;
  /** Runs once, when the service first answers. */
  readonly prepare: string | null;
  /** The signal for a clean shutdown with exit code 0. */
  readonly stop: 'INT' | 'TERM';
  /** Runs in $DATA of a stopped service and prints the version that wrote the data. null: the data does not tell. */
  readonly dataVersion: string | null;
  /** Commands that load a seed file ("$1"), by file extension. */
  readonly seeds: Readonly<Record<string, string>>;
  url(to: Connection): string;
  /** Variables for the first service of its kind. */
  env(to: Connection): Readonly<Record<string, string>>;
  /** A client command that works in the task's sandbox. */
  client(to: Connection): readonly string[] | null;
  /** Whether the tests of ags run it. */
  readonly tried: boolean;
}

export interface Connection {
  readonly host: string;
  readonly port: number;
  /** All ports, in the preset's order. */
  readonly ports: readonly number[];
  readonly user: string;
  readonly password: string;
  readonly database: string;
}

/** "user:password@", or an empty string. */
export function credentials({ user, password }: Connection): string {
  if (user === '' && password === '') return '';
  return `${encodeURIComponent(user)}:${encodeURIComponent(password)}@`;
}
