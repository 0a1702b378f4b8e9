// cli/terminal/ask.ts: asks a question on the terminal. Without a terminal, the user needs a flag instead.
import { createInterface } from 'node:readline/promises';
import { AgsError } from '../../protocol/errors.ts';

export async function askOnTerminal(question: string): Promise<string> {
  if (!process.stdin.isTTY || !process.stderr.isTTY)
    throw new AgsError('usage.no-terminal', `Cannot ask without a terminal: ${question.trim()}`, {
      hint: 'Give the answer as a flag; see --help.',
    });
  const reader = createInterface({ input: process.stdin, output: process.stderr });
  try {
    return (await reader.question(question)).trim();
  } finally {
    reader.close();
  }
}
