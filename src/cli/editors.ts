// cli/editors.ts: the editors that ags can start, and their arguments. Plain data.
// Invariant: no argument makes an editor trust what it opens.

export interface Editor {
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
export function editorArguments({ family }: Editor, directory: string, inside: string | null): string[] {
  if (family !== 'vscode') return [directory];
  if (inside === null) return ['--new-window', directory];
  const place = Buffer.from(directory).toString('hex');
  return ['--new-window', '--folder-uri', `vscode-remote://dev-container+${place}${inside}`];
}

/** How to keep an editor from running code of the project it opens. */
export const TRUST_WORDS: Readonly<Record<Editor['family'], string>> = {
  vscode:
    'When it asks whether you trust the authors, say no: in restricted mode it runs no task, setting or extension of the project.',
  jetbrains: 'When it asks whether you trust the project, choose safe mode.',
  other: 'Its settings decide which code of a project it runs.',
};
