// lib/command-words.ts: the words of a command line that the user typed as one text. No shell reads it.

/** Quotes group words with blanks. */
export function commandWords(text: string): string[] {
  return [...text.matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g)].map((match) => match[1] ?? match[2] ?? match[3] ?? '');
}
