// test/e2e/screen.ts: a real terminal that runs `ags` commands: a shell of the machine's user in tmux.
// Its text is what a user sees, with escape sequences interpreted.
// needs: tmux, sandbox
import { spawn, spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { AGS, type Machine } from '../harness.ts';

export interface Screen extends Disposable {
  /** Types text, without Enter. */
  type(text: string): void;
  /** Presses keys by tmux's names: Enter, C-c, C-z, Escape. */
  press(...keys: string[]): void;
  /** All lines with the scrollback, without blank ones at the end. */
  text(): string;
  /** Waits until the screen shows the text, and returns all lines. */
  until(wanted: RegExp | string, timeoutMs?: number): Promise<string>;
  /** Types a line and waits for the next prompt; returns the output and the exit code. */
  run(line: string, timeoutMs?: number): Promise<{ shown: string; code: number }>;
  /** Waits for the prompt after a command that was started with `type`. */
  ended(timeoutMs?: number): Promise<{ shown: string; code: number }>;
  resize(columns: number, rows: number): void;
  /** The terminal modes, by tmux's names. */
  modes(): string;
  /** The clipboard, as set by programs. */
  clipboard(): string;
  emptyClipboard(): void;
  /** Empties the screen and the scrollback. */
  clear(): Promise<void>;
}

const MODES = [
  'alternate_on',
  'cursor_flag',
  'keypad_cursor_flag',
  'keypad_flag',
  'mouse_any_flag',
  'mouse_sgr_flag',
  'scroll_region_upper',
  'scroll_region_lower',
  'wrap_flag',
];

export async function openScreen(
  machine: Machine,
  options: { columns?: number; rows?: number; env?: Record<string, string>; name?: string } = {},
): Promise<Screen> {
  const socket = join(machine.root, options.name ?? 'tmux');
  const identity = process.getuid?.() === 0 ? { uid: machine.uid, gid: machine.uid } : {};
  const env = { ...machine.env, TERM: 'xterm-256color', ...options.env };
  const tmux = (...args: string[]): string => {
    const done = spawnSync('tmux', ['-S', socket, '-f', '/dev/null', ...args], {
      cwd: machine.project,
      env,
      ...identity,
      encoding: 'utf8',
    });
    if (done.status !== 0) throw new Error(`tmux ${args[0]}: ${done.stderr}`);
    return done.stdout;
  };
  const server = spawn('tmux', ['-S', socket, '-f', '/dev/null', '-D'], {
    cwd: machine.project,
    env,
    ...identity,
    stdio: 'ignore',
  });
  for (
    let tries = 0;
    tries < 200 &&
    spawnSync('tmux', ['-S', socket, 'list-sessions'], { env, ...identity, stdio: 'pipe' }).stderr.includes(
      'No such file',
    );
    tries++
  )
    await sleep(10);
  // Prompts are numbered, so that an earlier one is not mistaken for the next.
  const profile = join(machine.root, 'profile.sh');
  writeFileSync(profile, `set +H\nunset HISTFILE\nPS1='<$?:\\#> '\nags() { '${process.execPath}' '${AGS}' "$@"; }\n`);
  tmux(
    'set-option',
    '-g',
    'history-limit',
    '20000',
    ';',
    'set-option',
    '-g',
    'escape-time',
    '0',
    ';',
    'set-option',
    '-s',
    'set-clipboard',
    'on',
    ';',
    'new-session',
    '-d',
    '-x',
    String(options.columns ?? 120),
    '-y',
    String(options.rows ?? 40),
    `exec bash --noprofile --rcfile ${profile}`,
  );
  let commands = 1;
  const screen: Screen = {
    type: (text) => void tmux('send-keys', '-l', '--', text),
    press: (...keys) => void tmux('send-keys', '--', ...keys),
    text: () => tmux('capture-pane', '-p', '-J', '-S', '-').replaceAll(/ +$/gm, '').replace(/\n+$/, ''),
    async until(wanted, timeoutMs = 30_000) {
      const end = Date.now() + timeoutMs;
      for (;;) {
        const text = screen.text();
        if (typeof wanted === 'string' ? text.includes(wanted) : wanted.test(text)) return text;
        if (Date.now() > end) throw new Error(`not seen within ${timeoutMs} ms: ${String(wanted)}\n${text}`);
        await sleep(40);
      }
    },
    async run(line, timeoutMs) {
      screen.type(line);
      screen.press('Enter');
      return screen.ended(timeoutMs);
    },
    async ended(timeoutMs) {
      const next = ++commands;
      const text = await screen.until(new RegExp(`<\\d+:${next}>$`, 'm'), timeoutMs);
      const [, shown = '', code = ''] =
        new RegExp(`<\\d+:${next - 1}>[^\\n]*\\n?([\\s\\S]*?)<(\\d+):${next}>$`, 'm').exec(text) ?? [];
      return { shown, code: Number(code) };
    },
    resize: (columns, rows) => void tmux('resize-window', '-x', String(columns), '-y', String(rows)),
    modes: () => tmux('display-message', '-p', MODES.map((name) => `${name}=#{${name}}`).join(' ')).trim(),
    clipboard: () => tmux('list-buffers', '-F', '#{buffer_sample}'),
    emptyClipboard: () => void tmux('delete-buffer'),
    async clear() {
      screen.press('C-l');
      // Clearing moves the text into the scrollback.
      const shown = (): string => tmux('capture-pane', '-p').trim();
      for (const end = Date.now() + 30_000; !/^<\d+:\d+>$/.test(shown()); await sleep(40))
        if (Date.now() > end) throw new Error(`the screen was not cleared:\n${shown()}`);
      tmux('clear-history');
    },
    [Symbol.dispose]() {
      spawnSync('tmux', ['-S', socket, 'kill-server'], { env, ...identity });
      server.kill();
    },
  };
  await screen.until('<0:1>');
  return screen;
}
