// agent-setup/launchers.ts: the scripts by which a person or a script starts an agent inside a sandbox. They stand in the first
// directory of its PATH, read-only.
// Invariant: a script holds no secret; it runs inside, with the rights of the sandbox.
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** The directory inside. */
export const LAUNCHERS_INSIDE = '/run/ags/bin';

export interface Launcher {
  readonly name: string;
  readonly title: string;
  /** The arguments of the caller follow it. */
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** Relative to the home. Written when the agent first starts in a sandbox. */
  readonly homeFiles: readonly { readonly path: string; readonly content: string }[];
  /** A sentence for whoever starts it; null: none. */
  readonly note: string | null;
}

/** Below the directory of the run, which no sandbox can write. */
export function launchersDir(runDir: string): string {
  return join(runDir, 'launchers');
}

export function writeLaunchers(runDir: string, launchers: readonly Launcher[]): void {
  const directory = launchersDir(runDir);
  mkdirSync(directory, { recursive: true, mode: 0o755 });
  for (const launcher of launchers) {
    const path = join(directory, launcher.name);
    writeFileSync(path, launcherScript(launcher));
    chmodSync(path, 0o755);
  }
}

export function launcherScript({ name, title, argv, env, homeFiles, note }: Launcher): string {
  const [program = '', ...args] = argv;
  // The program of an image is found by its name, behind this script.
  const own = program.startsWith('/')
    ? [`set -- ${words(argv)} "$@"`]
    : [
        `PATH=\${PATH#*${LAUNCHERS_INSIDE}:}`,
        `program=$(command -v ${quote(program)}) || { echo ${quote(`${title} is not in this image.`)} >&2; exit 127; }`,
        `set -- "$program" ${words(args)} "$@"`,
      ];
  return [
    '#!/bin/sh',
    `# Written by ags: starts ${title}.`,
    ...(note === null ? [] : [`case $* in --help | --version) ;; *) echo ${quote(`ags: ${note}`)} >&2 ;; esac`]),
    ...Object.entries(env).map(([variable, value]) => `export ${variable}=${quote(value)}`),
    ...(homeFiles.length === 0
      ? []
      : [`if mkdir /tmp/.ags-${name} 2> /dev/null; then`, ...homeFiles.flatMap(put), 'fi']),
    ...own,
    'exec "$@"',
    '',
  ].join('\n');
}

function put({ path, content }: { path: string; content: string }): string[] {
  // Another task may have left something else in a kept home.
  return [
    `  mkdir -p "$HOME"/${quote(dirname(path))}`,
    `  rm -rf "$HOME"/${quote(path)}`,
    `  printf %s ${quote(content)} > "$HOME"/${quote(path)}`,
  ];
}

function words(argv: readonly string[]): string {
  return argv.map(quote).join(' ');
}

function quote(word: string): string {
  return /^[\w./:=@%+,-]+$/.test(word) ? word : `'${word.replaceAll("'", String.raw`'\''`)}'`;
}
