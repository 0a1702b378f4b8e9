// cli/completion-scripts.ts: completion scripts for three shells, generated from the table of commands. Pure.
// Invariant: a script calls ags only for the names of tasks and branches; it contains all other words.
import type { Option, Verb } from './verb.ts';

export interface Completable {
  readonly name: string;
  readonly summary: string;
  readonly options: Verb['options'];
  readonly rest: Rest;
}

/** The positional arguments of a command. */
export type Rest =
  | { readonly kind: 'command' | 'tasks' | 'nothing' }
  | { readonly kind: 'words'; readonly words: readonly string[] };

export const SHELLS = {
  bash: { script: bashScript, install: 'ags completion bash > ~/.local/share/bash-completion/completions/ags' },
  zsh: { script: zshScript, install: 'ags completion zsh > ~/.zfunc/_ags' },
  fish: { script: fishScript, install: 'ags completion fish > ~/.config/fish/completions/ags.fish' },
} as const satisfies Record<string, { script(verbs: readonly Completable[]): string; install: string }>;

/** Read from the usage line of the command. */
export function restOf(verb: Verb): Rest {
  if (verb.passthrough === true) return { kind: 'command' };
  const choice = /^\w+ \{([^}]+)\}/.exec(verb.usage)?.[1];
  if (choice !== undefined) return { kind: 'words', words: choice.split('|') };
  return { kind: /[[<]task\b/.test(verb.usage) ? 'tasks' : 'nothing' };
}

/** With the words before the one that is being typed, so that no task is offered twice. */
const tasks = (given: string): string => `ags __complete tasks ${given} 2>/dev/null`;

const BRANCHES = 'ags __complete branches 2>/dev/null';

type Value =
  | { readonly kind: 'none' | 'any' | 'file' | 'directory' | 'variable' | 'branch' | 'task' }
  | { readonly kind: 'words'; readonly words: readonly string[] };

function valueOf({ type, value = '' }: Option): Value {
  if (type === 'boolean') return { kind: 'none' };
  if (value.includes('|')) return { kind: 'words', words: value.split('|') };
  if (value.startsWith('NAME')) return { kind: 'variable' };
  if (value === 'branch' || value === 'commit') return { kind: 'branch' };
  if (value === 'task') return { kind: 'task' };
  return { kind: value === 'path' || value === 'file' ? 'file' : value === 'directory' ? 'directory' : 'any' };
}

function flagsOf(verb: Completable, wanted: (value: Value) => boolean): string[] {
  return Object.entries(verb.options)
    .filter(([, option]) => wanted(valueOf(option)))
    .flatMap(([name, option]) => [`--${name}`, ...(option.short === undefined ? [] : [`-${option.short}`])]);
}

function bashScript(verbs: readonly Completable[]): string {
  const rest = ({ rest: what }: Completable): string =>
    what.kind === 'words' ? what.words.join(' ') : `@${what.kind}`;
  const cases = verbs.map(
    (verb) =>
      `    ${verb.name}) flags='${[...flagsOf(verb, () => true), '--help', '-h'].join(' ')}' valued='${flagsOf(verb, ({ kind }) => kind !== 'none').join(' ')}' rest='${rest(verb)}' ;;`,
  );
  const values = verbs.flatMap((verb) =>
    Object.entries(verb.options).flatMap(([name, option]) => {
      const value = valueOf(option);
      const compgen = bashValue(value);
      return compgen === null
        ? []
        : [
            `    ${[`${verb.name}:--${name}`, ...(option.short === undefined ? [] : [`${verb.name}:-${option.short}`])].join('|')}) ${compgen}; return ;;`,
          ];
    }),
  );
  return `# Completion of ags for bash. To install it:
#   ${SHELLS.bash.install}
_ags() {
  local cur=\${COMP_WORDS[COMP_CWORD]} prev=\${COMP_WORDS[COMP_CWORD-1]} verb=\${COMP_WORDS[1]}
  local flags='' valued='' rest='@nothing' i
  COMPREPLY=()
  if ((COMP_CWORD == 1)); then
    COMPREPLY=($(compgen -W '${[...verbs.map(({ name }) => name), '--version', '--help'].join(' ')}' -- "$cur"))
    return
  fi
  case $verb in
${cases.join('\n')}
  esac
  if [[ $rest == @command ]]; then
    for ((i = 2; i < COMP_CWORD; i++)); do
      case \${COMP_WORDS[i]} in
        --) _ags_command $((i + 1)); return ;;
        -*) [[ " $valued " == *" \${COMP_WORDS[i]} "* ]] && ((i++)) ;;
        *) _ags_command $i; return ;;
      esac
    done
  fi
  case $verb:$prev in
${values.join('\n')}
  esac
  [[ " $valued " == *" $prev "* ]] && return
  if [[ $cur == -* ]]; then
    COMPREPLY=($(compgen -W "$flags" -- "$cur"))
    return
  fi
  case $rest in
    @command) _ags_command $COMP_CWORD ;;
    @tasks) COMPREPLY=($(compgen -W "$(${tasks('"${COMP_WORDS[@]:2:COMP_CWORD-2}"')})" -- "$cur")) ;;
    @nothing) ;;
    *) COMPREPLY=($(compgen -W "$rest" -- "$cur")) ;;
  esac
}
_ags_command() {
  if declare -F _command_offset >/dev/null; then
    _command_offset "$1"
  elif (($1 == COMP_CWORD)); then
    COMPREPLY=($(compgen -c -- "\${COMP_WORDS[COMP_CWORD]}"))
  else
    compopt -o filenames
    COMPREPLY=($(compgen -f -- "\${COMP_WORDS[COMP_CWORD]}"))
  fi
}
complete -F _ags ags
`;
}

function bashValue(value: Value): string | null {
  switch (value.kind) {
    case 'words':
      return `COMPREPLY=($(compgen -W '${value.words.join(' ')}' -- "$cur"))`;
    case 'file':
      return 'compopt -o filenames; COMPREPLY=($(compgen -f -- "$cur"))';
    case 'directory':
      return 'compopt -o filenames; COMPREPLY=($(compgen -d -- "$cur"))';
    case 'branch':
      return `COMPREPLY=($(compgen -W "$(${BRANCHES})" -- "$cur"))`;
    case 'task':
      return `COMPREPLY=($(compgen -W "$(${tasks('')})" -- "$cur"))`;
    case 'variable':
      return 'COMPREPLY=($(compgen -e -- "$cur"))';
    case 'any':
    case 'none':
      return null;
  }
}

function zshScript(verbs: readonly Completable[]): string {
  const describe = verbs.map(({ name, summary }) => `    ${quote(`${name}:${summary}`)}`);
  const cases = verbs.map(
    (verb) =>
      `    ${verb.name}) _arguments -s -S ${[...zshOptions(verb), ...zshRest(verb.rest)].map(quote).join(' ')} ;;`,
  );
  return `#compdef ags
# Completion of ags for zsh. To install it:
#   ${SHELLS.zsh.install}
# with "fpath+=~/.zfunc" before "compinit" in ~/.zshrc
_ags_tasks() {
  local -a tasks
  tasks=(\${(f)"$(${tasks('"${(@)words[2,CURRENT-1]}"')})"})
  compadd -a tasks
}
_ags_branches() {
  local -a branches
  branches=(\${(f)"$(${BRANCHES})"})
  compadd -a branches
}
_ags() {
  local -a verbs
  verbs=(
${describe.join('\n')}
  )
  if ((CURRENT == 2)); then
    _describe command verbs
    return
  fi
  shift words
  ((CURRENT--))
  case $words[1] in
${cases.join('\n')}
  esac
}
if [[ $funcstack[1] == _ags ]]; then _ags "$@"; else compdef _ags ags; fi
`;
}

function zshOptions(verb: Completable): string[] {
  const escape = (text: string): string => text.replaceAll(/[[\]:\\]/g, String.raw`\$&`);
  return Object.entries({ ...verb.options, help: HELP }).flatMap(([name, option]) => {
    const value = valueOf(option);
    const action = value.kind === 'none' ? '' : `:${escape(option.value ?? 'value')}:${zshValue(value)}`;
    const often = option.multiple === true ? '*' : '';
    return [
      `${often}--${name}[${escape(option.about)}]${action}`,
      ...(option.short === undefined ? [] : [`${often}-${option.short}[${escape(option.about)}]${action}`]),
    ];
  });
}

function zshValue(value: Value): string {
  switch (value.kind) {
    case 'words':
      return `(${value.words.join(' ')})`;
    case 'file':
      return '_files';
    case 'directory':
      return '_files -/';
    case 'branch':
      return '_ags_branches';
    case 'task':
      return '_ags_tasks';
    case 'variable':
      return '_parameters -g "*export*"';
    case 'any':
    case 'none':
      return ' ';
  }
}

function zshRest(rest: Rest): string[] {
  switch (rest.kind) {
    case 'command':
      return ['(-):command:_command_names -e', '*::arguments:_normal'];
    case 'tasks':
      return ['*:task:_ags_tasks'];
    case 'words':
      return [`1:word:(${rest.words.join(' ')})`, ANY_MORE];
    case 'nothing':
      return [ANY_MORE];
  }
}

/** Otherwise zsh completes nothing after an argument that is not described, such as a goal. */
const ANY_MORE = '*: : ';

function fishScript(verbs: readonly Completable[]): string {
  const lines = verbs.flatMap((verb) => {
    const when = `-n ${quote(`__fish_seen_subcommand_from ${verb.name}`)}`;
    const options = Object.entries({ ...verb.options, help: HELP }).map(
      ([name, option]) =>
        `complete -c ags ${when} -l ${name}${option.short === undefined ? '' : ` -s ${option.short}`}${fishValue(valueOf(option))} -d ${quote(option.about)}`,
    );
    return [
      `complete -c ags -n __fish_use_subcommand -a ${verb.name} -d ${quote(verb.summary)}`,
      ...options,
      ...fishRest(verb.rest, when),
    ];
  });
  return `# Completion of ags for fish. To install it:
#   ${SHELLS.fish.install}
complete -c ags -f
${lines.join('\n')}
`;
}

function fishValue(value: Value): string {
  switch (value.kind) {
    case 'words':
      return ` -x -a ${quote(value.words.join(' '))}`;
    case 'file':
      return ' -r -F';
    case 'directory':
      return ` -x -a ${quote('(__fish_complete_directories)')}`;
    case 'branch':
      return ` -x -a ${quote(`(${BRANCHES})`)}`;
    case 'task':
      return ` -x -a ${quote(`(${tasks('')})`)}`;
    case 'variable':
      return ` -x -a ${quote('(set -xn)')}`;
    case 'any':
      return ' -x';
    case 'none':
      return '';
  }
}

function fishRest(rest: Rest, when: string): string[] {
  switch (rest.kind) {
    case 'command':
      return [`complete -c ags ${when} -a ${quote('(__fish_complete_subcommand --fcs-skip=2)')}`];
    case 'tasks':
      return [`complete -c ags ${when} -a ${quote(`(${tasks('(commandline -opc)[3..]')})`)}`];
    case 'words':
      return [`complete -c ags ${when} -a ${quote(rest.words.join(' '))}`];
    case 'nothing':
      return [];
  }
}

const HELP: Option = { type: 'boolean', short: 'h', about: 'show help' };

/** Valid in all three shells, because no text here has a backslash before a quote. */
function quote(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}
