// services/presets/preset.ts: what ags knows of a service: how it is found, filled, started, asked and connected to. Data and texts for `sh`.
//
// All of it runs inside the service's own sandbox, with these variables: DATA (its only writable directory that lasts), PORT,
// SERVICE_USER, SERVICE_PASSWORD, SERVICE_DATABASE. No value is ever put into a text.
// Invariant: a service listens on 127.0.0.1 of its own network and nowhere else, and keeps everything it has below $DATA.

export interface ServicePreset {
  readonly name: string;
  readonly title: string;
  /** Services of one kind share the variables that only the first of them has, such as DATABASE_URL. */
  readonly kind: string;
  /** Programs that it cannot do without; of each line the first that is there. */
  readonly programs: readonly (readonly string[])[];
  /** Where they are looked for beside PATH; `*` stands for a version, the highest first. */
  readonly places: readonly string[];
  readonly install: string;
  /** For containers. */
  readonly image: string;
  /** The first is the one that `port` changes. */
  readonly ports: readonly number[];
  /** Who may do what in it; null: it knows no users, or no databases. */
  readonly user: string | null;
  readonly password: string | null;
  readonly database: string | null;
  /** Before it first runs; null: nothing needs to be done. */
  readonly init: string | null;
  readonly run: string;
  /** One try; succeeds when it answers. null: when its first port accepts. */
  readonly ready: string | null;
  /** Once, when it first answers. */
  readonly prepare: string | null;
  /** The signal that ends it in good order, and with exit code 0. */
  readonly stop: 'INT' | 'TERM';
  /** In $DATA of one that has ended: prints the version that the data is of. null: it does not say. */
  readonly dataVersion: string | null;
  /** By the ending of a seed file: what takes it, as "$1". */
  readonly seeds: Readonly<Record<string, string>>;
  url(to: Connection): string;
  /** Of the first of its kind. */
  env(to: Connection): Readonly<Record<string, string>>;
  /** What opens it, from the sandbox of the task. */
  client(to: Connection): readonly string[] | null;
  /** Whether the tests of ags run it. */
  readonly tried: boolean;
}

export interface Connection {
  readonly host: string;
  readonly port: number;
  /** All of its ports, in the order of the preset. */
  readonly ports: readonly number[];
  readonly user: string;
  readonly password: string;
  readonly database: string;
}

/** "user:password@", or nothing. */
export function credentials({ user, password }: Connection): string {
  if (user === '' && password === '') return '';
  return `${encodeURIComponent(user)}:${encodeURIComponent(password)}@`;
}
