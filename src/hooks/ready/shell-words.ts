// hooks/ready/shell-words.ts: splits a shell line into simple commands without running it.
// It catches mistakes, not hidden commands: variables and substitutions stay as they are.

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
