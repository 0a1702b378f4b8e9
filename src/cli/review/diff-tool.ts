// cli/review/diff-tool.ts: shows changes in a diff tool of the user's: diff.tool and difftool.* of the user's own git settings.
// Invariant: the tool gets copies in a fresh directory: ordinary files, none executable, none a link, none in a directory named
// .git. It runs in the user's home, so no setting of a project or a task applies to it.
import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { AgsError } from '../../protocol/errors.ts';
import type { Change } from '../../protocol/changes.ts';
import { readBlob } from '../../git/staging/staging.ts';
import { userSettings } from '../../git/user-settings.ts';
import type { Review } from '../../results/review.ts';
import type { Context } from '../verb.ts';

export interface DiffTool {
  readonly name: string;
  /** A shell command of the user's, or the arguments of a known tool before the two paths. */
  readonly command: string | readonly string[];
  /** It compares directories; otherwise it gets one pair of files after the other. */
  readonly directories: boolean;
}

/** Tools without a command of the user's. A text editor reads no settings from the compared text. */
const KNOWN: Readonly<Record<string, { readonly argv: readonly string[]; readonly directories?: true }>> = {
  bc: { argv: ['bcompare'], directories: true },
  code: { argv: ['code', '--wait', '--diff'] },
  diffuse: { argv: ['diffuse'] },
  gvimdiff: { argv: ['gvim', '--cmd', 'set modelines=0', '-R', '-f', '-d'] },
  kdiff3: { argv: ['kdiff3'], directories: true },
  kompare: { argv: ['kompare'], directories: true },
  meld: { argv: ['meld'], directories: true },
  nvimdiff: { argv: ['nvim', '--cmd', 'set modelines=0', '-R', '-d'] },
  tkdiff: { argv: ['tkdiff'] },
  vimdiff: { argv: ['vim', '--cmd', 'set modelines=0', '-R', '-d'] },
  xxdiff: { argv: ['xxdiff'], directories: true },
};

/** `wanted` is a name; without it, diff.tool says which. */
export async function findDiffTool({ env, home }: Context, wanted?: string): Promise<DiffTool> {
  const settings = await userSettings({ home, configHome: env['XDG_CONFIG_HOME'] });
  const name = wanted ?? settings.get('diff.tool') ?? settings.get('merge.tool');
  if (name === undefined || name === '')
    throw new AgsError('usage.invalid', 'Your git settings name no diff tool.', {
      hint: 'Name one: git config --global diff.tool meld',
    });
  const command = settings.get(`difftool.${name}.cmd`);
  if (command !== undefined) return { name, command, directories: false };
  const known = Object.hasOwn(KNOWN, name) ? KNOWN[name] : undefined;
  if (known === undefined)
    throw new AgsError('usage.invalid', `ags does not know the diff tool ${name}.`, {
      hint: `Say how it starts: git config --global difftool.${name}.cmd '${name} "$LOCAL" "$REMOTE"'\nOr use one of: ${Object.keys(KNOWN).join(', ')}`,
    });
  const [program = name, ...args] = known.argv;
  return {
    name,
    command: [settings.get(`difftool.${name}.path`) ?? program, ...args],
    directories: known.directories === true,
  };
}

/** Waits until the tool ends. */
export async function showInTool(
  ctx: Context,
  tool: DiffTool,
  review: Pick<Review, 'task' | 'compared'>,
  changes: readonly Change[],
): Promise<void> {
  const directory = mkdtempSync(join(review.task.paths.root, 'compare-'));
  // Changed names could collide, so such files are compared one by one.
  const whole = tool.directories && changes.length > 1 && changes.every(({ path }) => plainPath(path) === path);
  try {
    for (const side of whole ? ['old', 'new'] : []) mkdirSync(join(directory, side));
    const pairs: [string, string, string][] = [];
    for (const [n, change] of changes.entries()) {
      const path = plainPath(change.path);
      const place = whole ? directory : join(directory, String(n));
      const pair = [join(place, 'old', path), join(place, 'new', path), path] as const;
      for (const [file, side] of [
        [pair[0], change.before],
        [pair[1], change.after],
      ] as const)
        if (side !== null || !whole) writeSide(file, await contentOf(review, change, side));
      pairs.push([...pair]);
    }
    if (whole) await run(ctx, tool, join(directory, 'old'), join(directory, 'new'), '.');
    else for (const [before, after, path] of pairs) await run(ctx, tool, before, after, path);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

/** Characters that a shell, an option parser or a tool could take for something else become "_". */
export function plainPath(path: string): string {
  return path
    .split('/')
    .map((part) => part.replaceAll(/[^\p{L}\p{N}._@+=,-]/gu, '_').replace(/^-/, '_'))
    .map((part) => (/^(\.*|\.git)$/i.test(part) ? `_${part}` : part))
    .join('/');
}

/** A missing side is an empty file, and a link is a file with the path it points to. */
async function contentOf(
  { task, compared }: Pick<Review, 'task' | 'compared'>,
  change: Change,
  side: Change['after'],
): Promise<Buffer> {
  if (side === null) return Buffer.alloc(0);
  const merged = side === change.after ? compared.merged.get(change.path) : undefined;
  return merged ?? readBlob(task.paths.staging, side.oid);
}

function writeSide(file: string, bytes: Buffer): void {
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, bytes, { mode: 0o600 });
}

async function run(ctx: Context, tool: DiffTool, local: string, remote: string, path: string): Promise<void> {
  const [program, args] =
    typeof tool.command === 'string'
      ? ['/bin/sh', ['-c', tool.command]]
      : [tool.command[0] ?? tool.name, [...tool.command.slice(1), local, remote]];
  const child = spawn(program, args, {
    cwd: ctx.home,
    env: {
      ...ctx.env,
      LOCAL: local,
      REMOTE: remote,
      MERGED: path,
      BASE: path,
      GIT_CEILING_DIRECTORIES: dirname(local),
    },
    stdio: 'inherit',
  });
  // Ctrl-C belongs to the tool.
  const ignore = (): void => undefined;
  process.on('SIGINT', ignore);
  try {
    await new Promise<void>((resolve, reject) => {
      child.once('error', (error) =>
        reject(
          new AgsError('path.not-found', `The diff tool ${tool.name} cannot be started: ${program} was not found.`, {
            hint: `Say where it is: git config --global difftool.${tool.name}.path <path>`,
            cause: error,
          }),
        ),
      );
      // Some tools exit with 1 if the files differ.
      child.once('close', () => resolve());
    });
  } finally {
    process.off('SIGINT', ignore);
  }
}
