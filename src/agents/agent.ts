// agents/agent.ts: how one coding agent is driven. One file for each agent in this folder, and one line in agents.ts; nothing
// else in ags knows an agent by its name.
import type { AgentEvent } from '../protocol/agent-event.ts';
import type { GateRequest, GateVerdict } from '../protocol/hook.ts';
import type { SecretRule, TokenRefresh } from '../protocol/network.ts';

export interface Agent {
  /** What the user types: claude. */
  readonly name: string;
  /** What people read: Claude Code. */
  readonly title: string;
  /** null: there is nothing to install. */
  readonly install: Install | null;
  /** Ways to sign in, best first; none: it needs no account. */
  readonly signIns: readonly SignIn[];
  /** Rules for the hosts it needs besides the model endpoint of its sign-in. */
  readonly hosts: readonly string[];
  /** Its own settings and scratch files in a project: not part of its work, unless the base commit has them. Patterns as in .gitignore. */
  readonly scratch: readonly string[];
  /** Whether a hook can stop what it is about to do, or is only told of it. */
  readonly gate: 'enforced' | 'observed';
  /** It keeps to maxTurns by itself; for others the tools they use are counted. */
  readonly countsTurns?: true;
  /** What it says it has used is of the whole session, not of the turn. */
  readonly countsSession?: true;
  /** Whether a session that has ended can be taken up again. */
  readonly resumes: boolean;
  /** What its own hooks say, for those that come by the hook door; null: it has no such hooks. */
  readonly readHook: ReadHook | null;
  /** Pure: everything that is started, set and written for one turn. */
  plan(input: AgentInput): AgentPlan;
  /** Reads what it prints, writes what it is told; for headless turns alone. */
  drive(io: AgentIo): AgentDriver;
}

/** From npm. The program is called directly: a launcher script of the package may need what a sandbox does not have. */
export interface Install {
  readonly package: string;
  /** The version that was tried with ags. */
  readonly version: string;
  /** The name of the program on the PATH. */
  readonly program: string;
  /** The program below node_modules, by architecture. */
  readonly entry: Readonly<Record<'x64' | 'arm64', string>>;
  /** The least major version of Node that runs it; null: it is a program of its own. */
  readonly node: number | null;
  /** Further packages it needs beside it. */
  readonly more?: Readonly<Record<string, string>>;
}

export interface SignIn {
  /** api-key: paid by use. token: a long-lived one of a subscription. login: what the agent's own log-in leaves in its home. */
  readonly kind: 'api-key' | 'token' | 'login';
  /** "API key of the Anthropic Console". */
  readonly title: string;
  /** How to get one, in a sentence. */
  readonly how: string;
  /** Variables of the user's environment that commonly hold it. */
  readonly found: readonly string[];
  /** Where it is put in by the gateway, and what the agent has in its place. Never the value itself. */
  readonly secret: Omit<SecretRule, 'name' | 'from' | 'origin'>;
  /** For `login`: how it is done, and where its result is. */
  readonly login?: {
    /** After the program. */
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
    /** How an expired one is renewed, outside. */
    readonly refresh: TokenRefresh | null;
  };
}

export interface AgentInput {
  /** The program inside, with what must stand in front of it. */
  readonly program: readonly string[];
  readonly mode: 'headless' | 'interactive';
  readonly prompt: string;
  /** Absolute, inside. */
  readonly home: string;
  readonly project: string;
  readonly task: string;
  /** To take up; null: a new one. */
  readonly session: string | null;
  /** A UUID that a new session may be given. */
  readonly newSession: string;
  readonly model: string | null;
  readonly maxTurns: number | null;
  readonly maxCostMicros: number | null;
  /** How it is signed in; null: it is not. Its variables are set in the sandbox already: `env` holds a placeholder, `endpoint` a URL. */
  readonly signIn: SignIn | null;
  /** Base URL of the endpoint of `signIn`, if it has one. */
  readonly endpoint: string | null;
  /** How the agent's own hooks reach ours; null: there are none, and none need be set up. */
  readonly hooks: HookDoor | null;
}

export interface HookDoor {
  /**
   * A program inside, for hooks that are commands: JSON as the agent gives it on stdin, the event's name as an argument. Exit 0 lets
   * pass, 2 refuses, with the reason on stderr; whatever goes wrong refuses.
   */
  readonly command: readonly string[];
  /** The same over HTTP: POST to <url>/<event>, answered with {"allow":true} or {"allow":false,"reason":"..."}. */
  readonly url: string;
}

export interface AgentPlan {
  readonly argv: readonly string[];
  /** Besides what every sandbox has. */
  readonly env: Readonly<Record<string, string>>;
  /** Files that it cannot change, at absolute paths inside: below /etc or /run/ags. */
  readonly files: readonly { readonly to: string; readonly content: string }[];
  /** Files in its home, relative to it, written anew before each turn. */
  readonly homeFiles: readonly { readonly path: string; readonly content: string }[];
}

export interface AgentIo {
  /** To its standard input. */
  write(text: string): void;
  /** Nothing more comes. */
  end(): void;
  emit(event: AgentEvent): void;
  /** Asks the hooks; for agents that ask over their own streams. Never rejects: what goes wrong is a refusal. */
  gate(request: GateRequest): Promise<GateVerdict>;
}

/** Lines come without their ends, cut at 1 MB. Nothing here throws, whatever a line holds. */
export interface AgentDriver {
  start(prompt: string): void;
  line(text: string): void;
  errorLine(text: string): void;
  /** A message while it works; false: it cannot take one now. */
  send(text: string): boolean;
  /** Asks it to stop at the next point; false: only a signal will do. */
  interrupt(): boolean;
  /** It has ended. Emits agent.finished, unless it has been. */
  exited(code: number): void;
}

/** The JSON of an agent's own hook, in our words. null: nothing that a hook of ours is asked about. Never throws. */
export type ReadHook = (event: string, json: unknown) => GateRequest | null;
