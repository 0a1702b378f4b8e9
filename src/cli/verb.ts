// cli/verb.ts: the type of one command of `ags`. Help, completion and parsing all use this one value.
import type { HostContext } from '../run/host-context.ts';

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
  /** How many of them stand before "--"; undefined if there is none. */
  readonly beforeDashes?: number;
}

export interface Verb {
  readonly summary: string;
  /** Without the leading "ags". */
  readonly usage: string;
  /** The most positionals it takes; the parser refuses more. any: the command counts them itself. */
  readonly takes: number | 'any';
  /** What to type in place of a surplus positional; otherwise the error shows the usage. */
  readonly instead?: string;
  readonly examples: readonly string[];
  readonly options: Readonly<Record<string, Option>>;
  /** A short paragraph for newcomers, shown after the usage. */
  readonly about?: string;
  /** Options end at the first positional; the rest belongs to the sandboxed command. */
  readonly passthrough?: boolean;
  run(args: Arguments, ctx: Context): Promise<number>;
}

/** Everything a command may use. Only cli/main.ts reads process.env. */
export interface Context {
  readonly host: HostContext;
  /** Every command, for help and completion. */
  readonly verbs: Readonly<Record<string, VerbEntry>>;
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

export interface VerbEntry {
  readonly group: string;
  /** The verb's own summary, repeated so that the overview need not load every verb. A test compares the two. */
  readonly summary: string;
  load(): Promise<{ default: Verb }>;
}
