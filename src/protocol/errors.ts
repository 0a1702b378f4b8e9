// protocol/errors.ts: all errors that a user can fix, as one class and one table.
// Invariant: every code in the table has an exit status (for the CLI) and an HTTP status (for the server).

/** Exit statuses of the `ags` command itself. A sandboxed command's own status is passed on unchanged. */
export const EXIT = {
  done: 0,
  failed: 1,
  usage: 2,
  notFound: 3,
  signIn: 4,
  checks: 6,
  conflict: 7,
  limit: 8,
  unavailable: 9,
  cancelled: 130,
} as const;

interface ErrorKind {
  readonly exit: number;
  readonly http: number;
  readonly meaning: string;
}

export const ERRORS = {
  'usage.invalid': { exit: EXIT.usage, http: 400, meaning: 'A command, flag or argument is unknown or wrong.' },
  'usage.no-terminal': {
    exit: EXIT.usage,
    http: 400,
    meaning: 'The command needs a terminal, or the flag that answers its question.',
  },
  'prompt.cancelled': {
    exit: EXIT.cancelled,
    http: 400,
    meaning: 'The user cancelled a question with Ctrl-C or Ctrl-D.',
  },
  'config.invalid': {
    exit: EXIT.usage,
    http: 400,
    meaning: 'A configuration file has an unknown key or a wrong value.',
  },
  'config.untrusted': {
    exit: EXIT.usage,
    http: 403,
    meaning: "The project's ags.yaml asks for rights that you have not approved yet.",
  },
  'project.unsuitable': { exit: EXIT.usage, http: 400, meaning: 'This directory cannot be used as a project.' },
  'project.changed': {
    exit: EXIT.conflict,
    http: 409,
    meaning: 'Files changed on both sides since the sandbox started.',
  },
  'task.not-found': { exit: EXIT.notFound, http: 404, meaning: 'No task has this name.' },
  'task.ambiguous': { exit: EXIT.usage, http: 400, meaning: 'Several tasks match; give the full name.' },
  'task.busy': { exit: EXIT.conflict, http: 409, meaning: 'Another process is using this task right now.' },
  'path.not-found': {
    exit: EXIT.notFound,
    http: 404,
    meaning: 'A given path does not exist, or is not among the changes.',
  },
  'path.risky': { exit: EXIT.usage, http: 400, meaning: 'A file that can run code must be named with --risky.' },
  'command.not-found': { exit: 127, http: 400, meaning: 'The command does not exist inside the sandbox.' },
  'image.missing': { exit: EXIT.notFound, http: 404, meaning: 'The engine does not have this image.' },
  'image.failed': { exit: EXIT.failed, http: 500, meaning: 'An image could not be built or fetched.' },
  'agent.unknown': { exit: EXIT.usage, http: 404, meaning: 'ags knows no agent with this name.' },
  'agent.missing': { exit: EXIT.unavailable, http: 503, meaning: 'The program of the agent is not installed.' },
  'agent.uninstallable': {
    exit: EXIT.unavailable,
    http: 502,
    meaning: 'The program of the agent could not be installed; nothing was changed.',
  },
  'auth.needed': { exit: EXIT.signIn, http: 401, meaning: 'The agent is not signed in, or its sign-in has expired.' },
  'auth.unreachable': {
    exit: EXIT.unavailable,
    http: 502,
    meaning: 'A sign-in could not be renewed right now; it is kept.',
  },
  'auth.invalid': { exit: EXIT.usage, http: 400, meaning: 'The value cannot be a key or a token.' },
  'backend.unavailable': {
    exit: EXIT.unavailable,
    http: 503,
    meaning: 'A protection or program that the sandbox needs is missing here.',
  },
  'backend.unprotected': {
    exit: EXIT.unavailable,
    http: 500,
    meaning: 'A protection of the sandbox was not in force, so the command was not started.',
  },
  'backend.failed': { exit: EXIT.unavailable, http: 500, meaning: 'The sandbox could not be started.' },
  'attack.impossible': {
    exit: EXIT.unavailable,
    http: 500,
    meaning: '`ags doctor --attack` could not run its attempts.',
  },
  'limit.reached': { exit: EXIT.limit, http: 429, meaning: 'The sandbox was stopped because it reached a limit.' },
  'program.killed': {
    exit: EXIT.failed,
    http: 500,
    meaning: 'A program that ags needs was killed by another process.',
  },
  'disk.full': { exit: EXIT.unavailable, http: 507, meaning: 'There is not enough free disk space.' },
  'state.damaged': { exit: EXIT.failed, http: 500, meaning: 'A file in the state directory cannot be read.' },
  'import.refused': {
    exit: EXIT.failed,
    http: 422,
    meaning:
      'A file is not a valid export of a task, or contains something that ags never imports. Nothing was imported.',
  },
  'setup.failed': {
    exit: EXIT.failed,
    http: 422,
    meaning: "A setup command of the project failed, so the agent's workspace could not be prepared.",
  },
  'service.unavailable': {
    exit: EXIT.unavailable,
    http: 503,
    meaning: 'A configured service cannot run here: its program is missing, or the sandbox cannot have listeners.',
  },
  'service.failed': {
    exit: EXIT.failed,
    http: 422,
    meaning: 'A service did not become ready, ended, or its seed failed.',
  },
  'checks.none': { exit: EXIT.usage, http: 400, meaning: 'The project has no checks to run.' },
  'checks.failed': {
    exit: EXIT.checks,
    http: 422,
    meaning: 'A check failed, or the checks have not passed for this merge.',
  },
  'capture.refused': {
    exit: EXIT.failed,
    http: 422,
    meaning: 'The changes are too large, or contain entries that ags cannot bring out of the sandbox.',
  },
} as const satisfies Record<string, ErrorKind>;

export type ErrorCode = keyof typeof ERRORS;

export class AgsError extends Error {
  readonly code: ErrorCode;
  /** The next thing to do, usually a command. */
  readonly hint: string | undefined;
  readonly details: Readonly<Record<string, unknown>>;

  constructor(
    code: ErrorCode,
    message: string,
    more: { hint?: string | undefined; cause?: unknown; details?: Record<string, unknown> } = {},
  ) {
    super(oneStop(message), more.cause === undefined ? undefined : { cause: more.cause });
    this.name = 'AgsError';
    this.code = code;
    this.hint = more.hint === undefined ? undefined : oneStop(more.hint);
    this.details = more.details ?? {};
  }
}

/** Message and hint as one line, for a place with room for no more. */
export function inOneLine({ message, hint }: AgsError): string {
  return flat(hint === undefined ? message : `${message}${/[.!?:]$/.test(message) ? '' : '.'} ${hint}`);
}

/** Line breaks become spaces, and two full stops one. A sentence of ags or a hook may have several lines; `visible` would show them as "\n". */
export function flat(text: string): string {
  return oneStop(text.trim().replaceAll(/\s*\n\s*/g, ' '));
}

/** A sentence that was put in as a part brings its own full stop. Paths such as "a/.." and ranges such as "a..b" stay. */
export function oneStop(text: string): string {
  return text.replaceAll(/(?<=[\p{L}\p{N}"')\]])\.\.(?=\s|$)/gu, '.');
}
