// cli/until-signal.ts: a program in the foreground ends in order when it is told to. The first process of a container hears a signal
// only if it listens for it, so this is called before anything else.

export function untilSignal(): Promise<void> {
  return new Promise((resolve) => {
    for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => resolve());
  });
}
