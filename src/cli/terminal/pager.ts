// cli/terminal/pager.ts: the pager that the user chose for git: GIT_PAGER, core.pager or PAGER, in this order.
// Invariant: a pager gets only sanitized text, and runs in the user's home, where no setting of a project or a task applies.
import { spawn } from 'node:child_process';
import { userSettings } from '../../git/user-settings.ts';
import type { Context } from '../verb.ts';

export interface Pager {
  write(text: string): Promise<void>;
  /** Waits until the user leaves the pager. */
  end(): Promise<void>;
}

/** null: the user chose none, or the output is not a terminal. */
export async function openPager(ctx: Context): Promise<Pager | null> {
  const command = ctx.terminal.stdout ? await pagerOf(ctx) : null;
  return command === null ? null : start(command, ctx);
}

/** null: no pager was chosen, or "cat", which stands for none. */
async function pagerOf({ env, home }: Context): Promise<string | null> {
  const command =
    env['GIT_PAGER'] ??
    (await userSettings({ home, configHome: env['XDG_CONFIG_HOME'] })).get('core.pager') ??
    env['PAGER'];
  return command === undefined || ['', 'cat', 'false'].includes(command.trim()) ? null : command;
}

function start(command: string, { env, home }: Context): Pager {
  // As in git, the user's setting is a shell command.
  const child = spawn('/bin/sh', ['-c', command], {
    cwd: home,
    // git's own defaults for these two.
    env: { LESS: 'FRX', LV: '-c', ...env },
    stdio: ['pipe', 'inherit', 'inherit'],
  });
  // Ctrl-C belongs to the pager.
  const ignore = (): void => undefined;
  process.on('SIGINT', ignore);
  let over = false;
  const ended = new Promise<void>((resolve) => {
    const done = (): void => {
      over = true;
      resolve();
    };
    child.once('close', done);
    child.once('error', done);
  });
  // The user may leave before the end of the text.
  child.stdin.on('error', () => undefined);
  return {
    async write(text) {
      if (over || child.stdin.destroyed || child.stdin.write(text)) return;
      await Promise.race([ended, new Promise((resolve) => child.stdin.once('drain', resolve))]);
    },
    async end() {
      child.stdin.end();
      await ended;
      process.off('SIGINT', ignore);
    },
  };
}
