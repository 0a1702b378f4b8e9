// agents/agent.ts: the interface of a coding agent. Each agent has its files in this folder and one line in agents.ts.
// Invariant: no other code in ags knows an agent by its name.
import type { AgentEvent } from '../protocol/agent-event.ts';
import type { GateRequest, GateVerdict } from '../protocol/hook.ts';
import type { SettingsFile, SettingsPlace } from './settings.ts';
import type { SecretRule, TokenRefresh } from '../protocol/network.ts';

export interface Agent {
  /** The name that users type: claude. */
  readonly name: string;
  /** The name in output: Claude Code. */
  readonly title: string;
  /** null: needs no installation. */
  readonly install: Install | null;
  /** Ways to sign in, best first; none: it needs no account. */
  readonly signIns: readonly SignIn[];
  /** How it uses a model endpoint of the user's own; null: it has no model. */
  readonly own: OwnModel | null;
  /** Which of the user's own settings it takes. */
  readonly settings: readonly SettingsPlace[];
  /** Rules for the hosts it needs besides the model endpoint of its sign-in. */
  readonly hosts: readonly string[];
  /** Its own settings and scratch files in a project: not part of its work unless the base commit has them. Patterns as in .gitignore. */
  readonly scratch: readonly string[];
  /** Whether a hook can stop an action, or only observes it. */
  readonly gate: 'enforced' | 'observed';
  /** It reports usage of the whole session, not of the turn. */
  readonly countsSession?: true;
  /** Whether an ended session can be resumed. */
  readonly resumes: boolean;
  /** In a terminal, it draws at least once a second while it works, and nothing at its prompt. */
  readonly drawsAtWork?: true;
  /** A call that a hook refused is missing from its output, so ags records the call itself. */
  readonly omitsRefused?: true;
  /** Parses requests of its own hooks that arrive at the hook listener; null: it has no such hooks. */
  readonly readHook: ReadHook | null;
  /** Pure: everything to start, set and write for one turn. */
  plan(input: AgentInput): AgentPlan;
  /** Reads its output and writes its input; only for headless turns. */
  drive(io: AgentIo): AgentDriver;
}

/** An npm package. ags calls the program directly: a launcher script of the package may need what a sandbox lacks. */
export interface Install {
  readonly package: string;
  /** The version tested with ags. */
  readonly version: string;
  /** The name of the program on the PATH. */
  readonly program: string;
  /** The program below node_modules, by architecture. */
  readonly entry: Readonly<Record<'x64' | 'arm64', string>>;
  /** The lowest major version of Node that runs it; null: it does not need Node. */
  readonly node: number | null;
  /** Further packages it needs. */
  readonly more?: Readonly<Record<string, string>>;
}

export interface SignIn {
  /** api-key: paid by use. token: a long-lived one of a subscription. login: the result of the agent's own log-in, in its home. */
  readonly kind: 'api-key' | 'token' | 'login';
  /** "API key of the Anthropic Console". */
  readonly title: string;
  /** How to get one, in a sentence. */
  readonly how: string;
  /** Variables of the user's environment that commonly hold it. */
  readonly found: readonly string[];
  /** Where the gateway inserts it, and the agent's substitute for it. Never the value itself. */
  readonly secret: Omit<SecretRule, 'name' | 'from' | 'origin'>;
  /** How to try it; none: its provider has no such request. */
  readonly trial?: Trial;
  /** For `login`: the command, and where its result is. */
  readonly login?: {
    /** Arguments of the program. */
    readonly argv: readonly string[];
    /** Relative to the home inside. */
    readonly file: string;
    readonly hosts: readonly string[];
    /** The tokens in that file. Hostile text: anything odd is an error. */
    read(text: string): {
      readonly access: string;
      readonly refresh: string | null;
      readonly expiresAtMs: number | null;
    };
    /** How ags renews an expired one, outside. */
    readonly refresh: TokenRefresh | null;
  };
}

export interface OwnModel {
  /** What the endpoint must speak: "Anthropic Messages". */
  readonly protocol: string;
  /** The header that usually carries the key. */
  readonly header: string;
  /** The variable inside where it looks for the key, which gets a placeholder; null: none. */
  readonly env: string | null;
  /** The variable inside that gets the URL. */
  readonly endpoint: string;
  /** The variable of the agent itself with such a URL: ags does not follow it in the user's environment. null: none. */
  readonly variable: string | null;
  /** It has no default model that such an endpoint would know. */
  readonly needsModel: boolean;
  readonly trial: Trial;
}

/** A GET request that costs nothing and needs the key. */
export interface Trial {
  /** Below the host, or below the URL of an endpoint of the user's own. */
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface AgentInput {
  /** The program inside, with its interpreter if it needs one. */
  readonly program: readonly string[];
  /**
   * `command`: a person or a script starts it, with arguments of their own behind `argv`, which must work with every subcommand. It asks
   * no permissions, because the sandbox is the boundary, and reads the project's settings, because there are no hooks to protect.
   */
  readonly mode: 'headless' | 'interactive' | 'command';
  readonly prompt: string;
  /** Absolute, inside. */
  readonly home: string;
  readonly project: string;
  readonly task: string;
  /** The session to resume; null: a new one. */
  readonly session: string | null;
  /** A UUID for a new session. */
  readonly newSession: string;
  readonly model: string | null;
  /** Its sign-in; null: none. The variables are already set in the sandbox: `env` holds a placeholder, `endpoint` a URL. */
  readonly signIn: SignIn | null;
  /** Base URL of the endpoint of `signIn`, if it has one. */
  readonly endpoint: string | null;
  /** The endpoint is one of the user's own (`own`): its URL is complete, with its path. */
  readonly ownEndpoint: boolean;
  /** The user's own settings, of `settings` of the agent. */
  readonly settings: readonly SettingsFile[];
  /** How the agent's own hooks reach ags; null: no hooks, none to set up. */
  readonly hooks: HookListener | null;
}

export interface HookListener {
  /**
   * A program inside, for hooks that are commands: the agent's JSON on stdin, the event's name as argument. Exit 0 allows, 2
   * refuses with the reason on stderr; any failure refuses.
   */
  readonly command: readonly string[];
  /** The same over HTTP: POST to <url>/<event>, answered with {"allow":true} or {"allow":false,"reason":"..."}. */
  readonly url: string;
}

export interface AgentPlan {
  readonly argv: readonly string[];
  /** In addition to those of every sandbox. */
  readonly env: Readonly<Record<string, string>>;
  /** Files that the agent cannot change, at absolute paths inside: below /etc or /run/ags. */
  readonly files: readonly { readonly to: string; readonly content: string }[];
  /** Files in its home, relative to it, rewritten before each turn. */
  readonly homeFiles: readonly { readonly path: string; readonly content: string }[];
}

export interface AgentIo {
  /** To its standard input. */
  write(text: string): void;
  /** Closes its standard input. */
  end(): void;
  emit(event: AgentEvent): void;
  /** Asks the hooks, for agents that ask over their own streams. Never rejects: a failure is a refusal. */
  gate(request: GateRequest): Promise<GateVerdict>;
}

/** Lines have no line ends and are cut at 1 MB. No method throws, whatever a line holds. */
export interface AgentDriver {
  start(prompt: string): void;
  line(text: string): void;
  errorLine(text: string): void;
  /** Sends a message while it works; false: it cannot take one now. */
  send(text: string): boolean;
  /** Asks it to stop at the next opportunity; false: only a signal stops it. */
  interrupt(): boolean;
  /** The program has ended. Emits agent.finished unless that was emitted before. */
  exited(code: number): void;
}

/** Translates the JSON of an agent's own hook. null: not relevant for hooks of ags. Never throws. */
export type ReadHook = (event: string, json: unknown) => GateRequest | null;
