// agent-run/prompt-watch.ts: tells whether an agent at a terminal waits at its prompt. While such an agent works it draws: text, a spinner, a
// clock. At its prompt the screen stays as it is, whatever brought it there: an answer, a question, a menu or an interruption.
// Invariant: bounded, whatever the program prints: one timer, and at most one change for each line that is entered or time that passes.

/** Agents draw at least once a second; a busy machine takes longer. */
export const QUIET_MS = 5000;
/** A program that has not been seen at work may still be loading, behind a first picture. */
const LOADING_MS = 20_000;
/** So long it must draw to have been seen at work. */
const SEEN_MS = 1000;
/** So long it must draw unasked, for a program that goes on by itself. */
const DRAWING_MS = 2000;
/** Between two drawings of one activity. */
const PAUSE_MS = 1500;
/** A drawing so soon after input or another window size is an answer to it. */
const ECHO_MS = 1000;

export interface PromptWatch {
  /** The program has drawn. */
  drew(): void;
  typed(data: Buffer): void;
  resized(): void;
  close(): void;
}

/** `asks`: the agent's requests to its model, if they are seen. One that is under way is work, however still the screen is. */
export function createPromptWatch(
  onChange: (waiting: boolean) => void,
  asks: () => { readonly open: number; readonly any: boolean } | null = () => null,
): PromptWatch {
  let waiting = false;
  let seen = false;
  let closed = false;
  let [touchedAt, drewAt, drawsSince] = [-Infinity, -Infinity, 0];
  let timer: NodeJS.Timeout | null = null;
  let timerMs = 0;
  const quiet = (): void => {
    timer = null;
    if ((asks()?.open ?? 0) > 0) return watch();
    waiting = true;
    onChange(true);
  };
  const watch = (): void => {
    // Before its first request an agent may load for a while, with a picture that moves and stops.
    const ms = seen && asks()?.any !== false ? QUIET_MS : LOADING_MS;
    if (timer !== null && ms === timerMs) return void timer.refresh();
    if (timer !== null) clearTimeout(timer);
    timer = setTimeout(quiet, (timerMs = ms));
  };
  const see = (): void => {
    if (timer !== null) clearTimeout(timer);
    timer = null;
    seen = true;
  };
  const works = (): void => {
    waiting = false;
    onChange(false);
    watch();
  };
  const touch = (): void => void (touchedAt = Date.now());
  return {
    drew() {
      if (closed) return;
      const now = Date.now();
      if (now - drewAt > PAUSE_MS) drawsSince = now;
      drewAt = now;
      if (!seen && now - drawsSince >= SEEN_MS) see();
      if (!waiting) return watch();
      if (now - touchedAt < ECHO_MS) drewAt = -Infinity;
      else if (now - drawsSince >= DRAWING_MS) works();
    },
    typed(data) {
      touch();
      // A line was entered. If nothing comes of it, the screen is soon quiet again.
      if (closed || !(data.includes(0x0d) || data.includes(0x0a))) return;
      if (!seen) see();
      if (waiting) works();
      else watch();
    },
    resized: touch,
    close() {
      closed = true;
      if (timer !== null) clearTimeout(timer);
    },
  };
}
