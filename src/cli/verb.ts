// cli/verb.ts: what one command of `ags` is made of. Help, completion and parsing all come from this one value.
import type { World } from '../run/host-context.ts';

export interface Option {
  readonly type: 'string' | 'boolean';
  readonly short?: string;
  readonly multiple?: boolean;
  /** Placeholder shown in the help text, for example "path". */
  readonly value?: string;
  readonly about: string;
}

export interface Arguments {
  readonly values: Readonly<Record<string, string | boolean | string[] | undefined>>;
  readonly positionals: readonly string[];
}

export interface Verb {
  readonly summary: string;
  /** Without the leading "ags". */
  readonly usage: string;
  readonly examples: readonly string[];
  readonly options: Readonly<Record<string, Option>>;
  /** Words after the usage that help a newcomer; a short paragraph. */
  readonly about?: string;
  /** Options end at the first positional: what follows belongs to the sandboxed command. */
  readonly passthrough?: boolean;
  run(args: Arguments, ctx: Context): Promise<number>;
}

/** The world as a verb may see it. The only place that reads process.env is cli/main.ts. */
export interface Context {
  readonly world: World;
  readonly cwd: string;
  readonly home: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly stateDir: string;
  readonly cacheDir: string;
  readonly configFile: string;
  readonly stdin: NodeJS.ReadStream;
  readonly stdout: NodeJS.WriteStream;
  readonly stderr: NodeJS.WriteStream;
  readonly colour: boolean;
  /** Which of the standard descriptors are terminals. */
  readonly terminal: { readonly stdin: boolean; readonly stdout: boolean; readonly stderr: boolean };
  now(): Date;
  /** Asks on the terminal; fails with usage.no-terminal when there is none. */
  ask(question: string): Promise<string>;
}
