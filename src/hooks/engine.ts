// hooks/engine.ts: runs all hooks for an action of the agent, one after the other.
// Invariant: all must allow it, and no answer is a refusal: a hook that fails, times out or throws refuses. A verdict holds for
// one request; nothing is remembered.
import type { Action } from '../protocol/agent-event.ts';
import type { GateRequest, HookDecided, HookInput, HookPoint } from '../protocol/hook.ts';
import type { Answer, Hook } from './hook.ts';

export interface Engine {
  /** Never rejects. */
  decide(request: GateRequest, mode: HookDecided['mode']): Promise<Decision>;
  /** The longest time until an answer. */
  readonly longestMs: number;
  close(): void;
}

/** A verdict; `by`: the hook that refused, and its own words. */
export type Decision =
  | { readonly allow: true }
  | { readonly allow: false; readonly reason: string; readonly by?: { readonly hook: string; readonly said: string } };

export interface EngineInput {
  /** In the order in which they run. */
  readonly hooks: readonly Hook[];
  readonly about: Pick<HookInput, 'task' | 'run' | 'agent' | 'goal' | 'project'>;
  emit(event: HookDecided, request: GateRequest): void;
  /** For all hooks of one request together. */
  readonly mostMs: number;
}

/** Hooks that run at the same time; more wait, so that an agent cannot overload the machine. */
const AT_ONCE = 8;
const WAIT_MS = 5000;

export function createEngine({ hooks, about, emit, mostMs }: EngineInput): Engine {
  const ending = new AbortController();
  const slots = createSlots(AT_ONCE);

  async function decide(request: GateRequest, mode: HookDecided['mode']): Promise<Decision> {
    const points = pointsOf(request);
    const asked = points.flatMap((point) => hooks.filter((hook) => hook.point === point));
    if (asked.length === 0) return { allow: true };
    if (ending.signal.aborted) return { allow: false, reason: 'The run is over, so this is refused.' };
    const endAt = performance.now() + mostMs;
    const free = await slots.take(WAIT_MS);
    if (free === null) return { allow: false, reason: 'Too many requests to the hooks at once, so this is refused.' };
    try {
      for (const hook of asked) {
        const answer = await askOne(hook, request, mode, endAt);
        if (answer.verdict !== 'allowed')
          return { allow: false, reason: inWords(hook, answer), by: { hook: hook.name, said: answer.reason } };
      }
      return { allow: true };
    } finally {
      free();
    }
  }

  async function askOne(hook: Hook, request: GateRequest, mode: HookDecided['mode'], endAt: number): Promise<Answer> {
    const { tool, actions, input } = request;
    const startedAt = performance.now();
    const timeoutMs = Math.max(0, Math.min(hook.timeoutMs, endAt - startedAt));
    const answer = await within(timeoutMs, ending.signal, (signal) =>
      hook.ask({ version: 1, hook: hook.point, ...about, tool, actions, input }, signal),
    );
    const event: HookDecided = {
      type: 'hook.decided',
      point: hook.point,
      hook: hook.name,
      tool,
      verdict: answer.verdict,
      reason: answer.verdict === 'allowed' ? null : inWords(hook, answer),
      ms: Math.round(performance.now() - startedAt),
      mode,
    };
    emit(event, request);
    return answer;
  }

  return {
    longestMs: Math.min(mostMs, WAIT_MS + longest(hooks)),
    close() {
      ending.abort();
      slots.close();
    },
    decide: (request, mode) =>
      decide(request, mode).catch((error: unknown) => ({
        allow: false,
        reason: `The hooks could not be asked, so this is refused: ${messageOf(error)}`,
      })),
  };
}

function pointsOf({ when, actions }: GateRequest): HookPoint[] {
  const has = (kind: Action['kind']): boolean => actions.some((action) => action.kind === kind);
  switch (when) {
    case 'before':
      return [
        'pre-any',
        ...(has('command') ? (['pre-bash'] as const) : []),
        ...(has('write') ? (['pre-writes'] as const) : []),
      ];
    case 'after':
      return has('write') ? ['post-writes'] : [];
    case 'stop':
      return ['post-stop'];
  }
}

function longest(hooks: readonly Hook[]): number {
  const sum = (...points: HookPoint[]): number =>
    hooks.filter(({ point }) => points.includes(point)).reduce((total, { timeoutMs }) => total + timeoutMs, 0);
  return Math.max(sum('pre-any', 'pre-bash', 'pre-writes'), sum('post-writes'), sum('post-stop'));
}

/** Enforces the time limit even if the hook ignores the signal. */
async function within(
  timeoutMs: number,
  ending: AbortSignal,
  ask: (signal: AbortSignal) => Promise<Answer>,
): Promise<Answer> {
  const over = new AbortController();
  const end = (): void => over.abort();
  const late = new Promise<Answer>((resolve) =>
    over.signal.addEventListener('abort', () =>
      resolve({
        verdict: 'failed',
        reason: ending.aborted ? 'the run was over' : `it gave no answer within ${Math.round(timeoutMs / 1000)} s`,
      }),
    ),
  );
  const timer = setTimeout(end, timeoutMs);
  ending.addEventListener('abort', end);
  if (ending.aborted) end();
  try {
    return await Promise.race([late, ask(over.signal).catch(failed)]);
  } catch (error) {
    return failed(error);
  } finally {
    clearTimeout(timer);
    ending.removeEventListener('abort', end);
  }
}

function failed(error: unknown): Answer {
  return { verdict: 'failed', reason: messageOf(error) };
}

function inWords({ name }: Hook, { verdict, reason }: Extract<Answer, { reason: string }>): string {
  return verdict === 'refused'
    ? `Refused by the hook ${name}: ${reason}`
    : `The hook ${name} failed, so this is refused: ${reason}`;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

interface Slots {
  /** Resolves to a function that frees the slot; null: no slot was free in time. */
  take(waitMs: number): Promise<(() => void) | null>;
  /** Waiting callers get no slot, now or later. */
  close(): void;
}

function createSlots(most: number): Slots {
  let free = most;
  const waiting = new Set<(slot: (() => void) | null) => void>();
  const give = (): void => {
    const [next] = waiting;
    if (next === undefined) free++;
    else next(give);
  };
  return {
    take: (waitMs) =>
      new Promise((resolve) => {
        if (free > 0) {
          free--;
          return resolve(give);
        }
        const next = (slot: (() => void) | null): void => {
          clearTimeout(timer);
          waiting.delete(next);
          resolve(slot);
        };
        const timer = setTimeout(() => next(null), waitMs);
        waiting.add(next);
      }),
    close() {
      for (const next of waiting) next(null);
      free = 0;
    },
  };
}
