// cli/open-editor.ts: checks a task out into a directory, warns about risky files, and starts an editor there.
import { spawn } from 'node:child_process';
import { basename } from 'node:path';
import { AgsError, EXIT } from '../protocol/errors.ts';
import { visible } from '../lib/sanitize.ts';
import { findProgram } from '../sandbox/programs.ts';
import type { StoredTask } from '../store/tasks.ts';
import { openTask, type OpenedTask } from '../projects/open-task.ts';
import { count, shellLine } from './terminal/format.ts';
import { readVersion } from '../lib/package-file.ts';
import type { Context } from './verb.ts';

export interface OpenWish {
  readonly ide: string | null;
  readonly devContainer: boolean;
  readonly fresh: boolean;
  readonly print: boolean;
  readonly json: boolean;
}

const MOST_NAMES = 10;

export async function openInEditor(ctx: Context, task: StoredTask, wish: OpenWish): Promise<number> {
  const opened = await openTask(ctx.host, task, {
    fresh: wish.fresh,
    devContainer: wish.devContainer ? { agsPackage: `@ags/cli@${readVersion()}`, services: [] } : null,
  });
  const found = findEditor(ctx, wish.ide);
  const argv = found === null ? null : [found.path, ...argumentsFor(found.editor, opened, wish)];
  if (wish.json) ctx.stdout.write(`${JSON.stringify({ ...opened, command: argv }, null, 2)}\n`);
  else {
    ctx.stdout.write(`${opened.directory}\n`);
    for (const line of remarks(opened, task)) ctx.stderr.write(`ags: ${line}\n`);
  }
  if (wish.print || wish.json) return EXIT.done;
  if (argv === null || found === null) {
    const editor = EDITORS[wish.ide ?? 'code'];
    if (editor !== undefined)
      ctx.stderr.write(
        `ags: No ${wish.ide === null ? 'known editor' : editor.program} was found in PATH. The command would be: ${shellLine([editor.program, ...argumentsFor(editor, opened, wish)])}\n`,
      );
    return wish.ide === null ? EXIT.done : EXIT.unavailable;
  }
  ctx.stderr.write(
    `ags: ${found.editor.title}: ${wish.devContainer ? IN_CONTAINER : TRUST_WORDS[found.editor.family]}\n`,
  );
  await start(argv, ctx);
  return EXIT.done;
}

const IN_CONTAINER =
  'if it does not open the dev container by itself, choose to reopen the directory in its container.';

function argumentsFor(editor: Editor, { directory }: OpenedTask, { devContainer }: OpenWish): string[] {
  return editorArguments(editor, directory, devContainer ? `/workspaces/${basename(directory)}` : null);
}

function remarks({ kept, commit, leftOut, risky }: OpenedTask, { task }: StoredTask): string[] {
  return [
    ...(kept === null || kept === commit
      ? []
      : [`${task.name} has newer work than this directory. To check it out again: ags open ${task.name} --fresh`]),
    ...leftOut.map(
      ({ path, why }) =>
        `${path} was left out: it ${why}, and editors act on it on this machine. To use one made by ags: --devcontainer`,
    ),
    ...(risky.length === 0
      ? []
      : [
          `${count(risky.length, 'file')} of the agent can run code on this machine: ${risky
            .slice(0, MOST_NAMES)
            .map((path) => visible(path))
            .join(', ')}${risky.length > MOST_NAMES ? ', ...' : ''}`,
        ]),
  ];
}

function findEditor(ctx: Context, ide: string | null): { editor: Editor; path: string } | null {
  // A relative entry could start a program from the current directory.
  const dirs = (ctx.env['PATH'] ?? '').split(':').filter((dir) => dir.startsWith('/'));
  for (const [name, editor] of Object.entries(EDITORS)) {
    const path = ide === null || ide === name ? findProgram(editor.program, dirs) : null;
    if (path !== null) return { editor, path };
  }
  return null;
}

/** The editor outlives ags and does not start in the agent's directory. */
function start([program = '', ...args]: readonly string[], ctx: Context): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { cwd: ctx.home, detached: true, stdio: 'ignore' });
    child.once('error', (cause) =>
      reject(new AgsError('backend.unavailable', `${program} could not be started: ${cause.message}`, { cause })),
    );
    child.once('spawn', () => {
      child.unref();
      resolve();
    });
  });
}

// Invariant: no argument makes an editor trust what it opens.

interface Editor {
  readonly title: string;
  readonly program: string;
  readonly family: 'vscode' | 'jetbrains' | 'other';
}

const editor = (title: string, program: string, family: Editor['family']): Editor => ({ title, program, family });

/** In search order. */
export const EDITORS: Readonly<Record<string, Editor>> = {
  code: editor('Visual Studio Code', 'code', 'vscode'),
  cursor: editor('Cursor', 'cursor', 'vscode'),
  windsurf: editor('Windsurf', 'windsurf', 'vscode'),
  codium: editor('VSCodium', 'codium', 'vscode'),
  idea: editor('IntelliJ IDEA', 'idea', 'jetbrains'),
  pycharm: editor('PyCharm', 'pycharm', 'jetbrains'),
  webstorm: editor('WebStorm', 'webstorm', 'jetbrains'),
  goland: editor('GoLand', 'goland', 'jetbrains'),
  rustrover: editor('RustRover', 'rustrover', 'jetbrains'),
  clion: editor('CLion', 'clion', 'jetbrains'),
  phpstorm: editor('PhpStorm', 'phpstorm', 'jetbrains'),
  rubymine: editor('RubyMine', 'rubymine', 'jetbrains'),
  zed: editor('Zed', 'zed', 'other'),
};

/** `inside` is the directory in the dev container, or null to open the directory on this machine. */
function editorArguments({ family }: Editor, directory: string, inside: string | null): string[] {
  if (family !== 'vscode') return [directory];
  if (inside === null) return ['--new-window', directory];
  const place = Buffer.from(directory).toString('hex');
  return ['--new-window', '--folder-uri', `vscode-remote://dev-container+${place}${inside}`];
}

/** How to keep an editor from running code of the project it opens. */
const TRUST_WORDS: Readonly<Record<Editor['family'], string>> = {
  vscode:
    'When it asks whether you trust the authors, say no: in restricted mode it runs no task, setting or extension of the project.',
  jetbrains: 'When it asks whether you trust the project, choose safe mode.',
  other: 'Its settings decide which code of a project it runs.',
};
