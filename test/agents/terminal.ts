// test/agents/terminal.ts: an agent in a real terminal (tmux), as a user sees it.
// uses: tmux
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Prepared } from './harness.ts';

export interface Terminal extends Disposable {
  /** Waits until the screen shows the text, and returns the screen. */
  until(wanted: string): Promise<string>;
}

export function openTerminal({ argv, env }: Prepared): Terminal {
  const directory = mkdtempSync('/tmp/ags-terminal-');
  const script = join(directory, 'start.sh');
  const words = argv.map((word) => `'${word.replaceAll("'", `'\\''`)}'`);
  writeFileSync(script, `${words.join(' ')}\necho "it ended with $?"\nexec cat\n`);
  const tmux = (...args: string[]): string =>
    spawnSync('tmux', ['-S', join(directory, 'tmux'), '-f', '/dev/null', ...args], { env, encoding: 'utf8' }).stdout;
  tmux('new-session', '-d', '-x', '120', '-y', '50', `exec sh ${script}`);
  return {
    async until(wanted) {
      let screen = '';
      for (const deadline = Date.now() + 100_000; Date.now() < deadline; await sleep(50)) {
        screen = tmux('capture-pane', '-p');
        if (screen.includes(wanted)) return screen;
      }
      throw new Error(`"${wanted}" did not appear. On the screen:\n${screen}`);
    },
    [Symbol.dispose]() {
      tmux('kill-server');
      rmSync(directory, { recursive: true, force: true });
    },
  };
}
