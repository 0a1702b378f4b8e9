// lib/command-title.ts: a command of several lines where there is room for one.

/** Its first line that is no comment and not empty. */
export function commandTitle(command: string): string {
  const lines = command.split('\n').map((line) => line.trim());
  const [first = '', ...more] = lines.filter((line) => line !== '' && !line.startsWith('#'));
  return more.length === 0 ? first || command.trim() : `${first} ...`;
}
