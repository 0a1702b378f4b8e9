// test/exec/given.ts: helpers for tests that depend on features of the real machine.
import { expect, test } from 'vitest';

/** A test that needs a feature of the machine: skipped with a reason, or failed where every feature is required. */
export function given(there: boolean, what: string): (name: string, body: () => unknown, timeoutMs?: number) => void {
  return (name, body, timeoutMs) => {
    if (there) test(name, async () => void (await body()), timeoutMs);
    else if (process.env['AGS_REQUIRE_ALL']) test(name, () => expect.fail(`this needs ${what}`));
    else test(name, ({ skip }) => skip(`needs ${what}`));
  };
}

export async function until(holds: () => boolean): Promise<void> {
  const deadline = Date.now() + 60_000;
  while (!holds()) {
    if (Date.now() > deadline) throw new Error('the condition did not hold within a minute');
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
