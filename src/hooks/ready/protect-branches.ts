// hooks/ready/protect-branches.ts: refuses git commands that would push, delete or move main, master or release/*.
// Best effort: it reads the text of a command, and a script or an alias can evade it. The actual protection is that a
// sandbox has its own git directory: nothing in it reaches the user's branches without a merge.
import type { HookInput } from '../../protocol/hook.ts';
import { ALLOWED, type Answer } from '../hook.ts';

export function protectBranches({ actions }: HookInput): Answer {
  for (const action of actions) {
    const problem =
      action.kind === 'command'
        ? problemOf(action.command)
        : action.kind === 'write' && REF_FILE.test(action.path)
          ? `${action.path} is the file of a protected branch`
          : null;
    if (problem !== null)
      return { verdict: 'refused', reason: `${problem}. Protected branches: main, master and release/*.` };
  }
  return ALLOWED;
}

const PROTECTED = /^(?:refs\/heads\/|heads\/)?(?:main|master|release\/.+)$/;
const REF_FILE = /(?:^|\/)\.git\/(?:refs\/heads\/(?:main|master|release\/.+)|packed-refs)$/;
/** Options of git itself that take a separate argument. */
const WITH_WORD = new Set(['-C', '-c', '--git-dir', '--work-tree', '--namespace', '--exec-path', '--config-env']);
const MOVES_HEAD = new Set(['commit', 'merge', 'reset', 'rebase', 'cherry-pick', 'revert', 'am', 'pull', 'push']);

function problemOf(line: string): string | null {
  let on: string | null = null;
  for (const words of simpleCommands(line)) {
    const call = gitCall(words);
    if (call === null) continue;
    const problem = judge(call, on);
    if (problem !== null) return problem;
    if (call.verb === 'checkout' || call.verb === 'switch') on = branchGoneTo(call);
  }
  return null;
}

interface Call {
  readonly verb: string;
  readonly rest: readonly string[];
  /** The words of `rest` that are not options. */
  readonly names: readonly string[];
}

function gitCall(words: readonly string[]): Call | null {
  const at = words.findIndex((word) => /(?:^|\/)git$/.test(word));
  if (at < 0) return null;
  let verb = at + 1;
  while (words[verb]?.startsWith('-') === true) verb += WITH_WORD.has(words[verb] ?? '') ? 2 : 1;
  const rest = words.slice(verb + 1);
  return { verb: words[verb] ?? '', rest, names: rest.filter((word) => !word.startsWith('-')) };
}

function branchGoneTo({ rest, names }: Call): string | null {
  // "--" means files; a new branch is not a protected one.
  if (rest.includes('--') || rest.some((word) => /^(-[bcBC]|--create|--force-create|--orphan)$/.test(word)))
    return null;
  return names.length === 1 ? (names.find(isProtected) ?? null) : null;
}

/** `on`: the protected branch that an earlier command of the same line checked out. */
function judge({ verb, rest, names }: Call, on: string | null): string | null {
  const has = (option: RegExp): boolean => rest.some((word) => option.test(word));
  const first = names.find(() => true) ?? '';
  const any = names.map(destination).find(isProtected);
  if (on !== null && MOVES_HEAD.has(verb)) return `git ${verb} would move ${on}`;
  switch (verb) {
    case 'push':
      if (has(/^--(all|mirror|branches)$/)) return 'git push would push every branch';
      return any === undefined ? null : `git push would change ${any} on the remote`;
    case 'fetch':
    case 'pull': {
      const into = names
        .filter((name) => /^[^/]*:(?!\/\/)|^[^:]+:(?!\/\/)/.test(name))
        .map(destination)
        .find(isProtected);
      return into === undefined ? null : `git ${verb} would move ${into}`;
    }
    case 'branch':
      if (any !== undefined && has(/^(-[a-zA-Z]*[dDmM][a-zA-Z]*|--delete|--move)$/))
        return `git branch would delete or move ${any}`;
      return isProtected(first) && has(/^(-[a-zA-Z]*[fCc][a-zA-Z]*|--force)$/)
        ? `git branch would move ${first}`
        : null;
    case 'checkout':
    case 'switch':
    case 'worktree': {
      const made = rest[rest.findIndex((word) => /^(-B|-C|--force-create|--orphan)$/.test(word)) + 1] ?? '';
      return isProtected(made) && has(/^(-B|-C|--force-create|--orphan)$/) ? `git ${verb} would move ${made}` : null;
    }
    case 'update-ref':
      return isProtected(first) ? `git update-ref would move ${first}` : null;
    default:
      return null;
  }
}

function isProtected(name: string): boolean {
  return PROTECTED.test(name);
}

/** In "+from:to" it is "to". */
function destination(name: string): string {
  const plain = name.replace(/^\+/, '');
  return plain.slice(plain.lastIndexOf(':') + 1);
}

// Shell lines are split without running them. It catches mistakes, not hidden commands: variables and substitutions stay as they are.
/** Each command as its words. Words that are command lines themselves (`sh -c "..."`) become further commands. */
export function simpleCommands(line: string, depth = 0): string[][] {
  const commands: string[][] = [[]];
  const last = (): string[] => commands.at(-1) ?? [];
  for (const [, separator, ...quoted] of line.slice(0, MAX_LINE).matchAll(TOKEN)) {
    if (separator !== undefined) commands.push([]);
    else last().push(unquote(quoted[0] ?? ''));
  }
  const inner = depth >= MAX_DEPTH ? [] : commands.flat().filter((word) => /[\s;&|]/.test(word));
  return [...commands.filter((words) => words.length > 0), ...inner.flatMap((word) => simpleCommands(word, depth + 1))];
}

const MAX_LINE = 100_000;
const MAX_DEPTH = 3;
/** The end of a command, or a word: any run of quoted parts and other characters. */
const TOKEN = /(\$\(|[;&|()`{}\n])|((?:'[^']*'|"(?:\\[^]|[^"\\])*"|\\[^]|[^\s;&|()`{}'"\\])+)/g;

function unquote(word: string): string {
  return word.replaceAll(
    /'([^']*)'|"((?:\\[^]|[^"\\])*)"|\\([^])/g,
    (_, single?: string, double?: string, one?: string) =>
      single ?? double?.replaceAll(/\\([$`"\\\n])/g, '$1') ?? one ?? '',
  );
}
