// test/cli/on-terminal.ts: one command of ags on a terminal of its own.
import { spawnSync } from 'node:child_process';
import { identity } from '../attacks/run-inside.ts';
import { AGS, type Machine } from '../harness.ts';

/** `answer` is typed; the arguments are words of a shell. */
export function onTerminal(
  machine: Machine,
  args: readonly string[],
  { answer = '', env = {} }: { answer?: string; env?: Record<string, string> },
): { code: number | null; screen: string } {
  const { status, stdout } = spawnSync('script', ['-qefc', ['"$NODE" "$AGS"', ...args].join(' '), '/dev/null'], {
    cwd: machine.project,
    env: { ...machine.env, ...env, NODE: process.execPath, AGS },
    ...identity(machine),
    encoding: 'utf8',
    input: `${answer}\n`,
    timeout: 40_000,
  });
  return { code: status, screen: stdout.replaceAll('\r', '') };
}
