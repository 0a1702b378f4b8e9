// server/routes/refusal.ts: turns errors into HTTP responses. Each AgsError code has its own status.
import { AgsError, ERRORS } from '../../protocol/errors.ts';
import type { ApiError } from '../../protocol/api/api.ts';

/** A request that is refused before it reaches the function behind its route. */
export class Refusal extends Error {
  readonly status: number;
  readonly code: string;
  readonly hint: string | undefined;
  readonly details: unknown;

  constructor(status: number, code: string, message: string, more: { hint?: string; details?: unknown } = {}) {
    super(message);
    this.status = status;
    this.code = code;
    this.hint = more.hint;
    this.details = more.details;
  }
}

export function errorAnswer(error: unknown): { status: number; body: ApiError } {
  if (error instanceof Refusal) {
    const { status, code, message, hint, details } = error;
    return { status, body: { error: { code, message, ...(hint === undefined ? {} : { hint }), details } } };
  }
  if (error instanceof AgsError) {
    const { code, message, hint, details } = error;
    // 401 means "sign in to the server first"; an agent that is not signed in is a different problem.
    const status = ERRORS[code].http === 401 ? 422 : ERRORS[code].http;
    return {
      status,
      body: {
        error: {
          code,
          message,
          ...(hint === undefined ? {} : { hint }),
          ...(Object.keys(details).length === 0 ? {} : { details }),
        },
      },
    };
  }
  const message = error instanceof Error ? error.message : String(error);
  return { status: 500, body: { error: { code: 'internal', message: `This is a bug in ags: ${message}` } } };
}
