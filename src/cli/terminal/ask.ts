// cli/terminal/ask.ts: asks a question on the terminal. Without a terminal, the user needs a flag instead. Ctrl-C and Ctrl-D end the command.
import { createInterface } from 'node:readline/promises';
import { AgsError } from '../../protocol/errors.ts';

export async function askOnTerminal(question: string): Promise<string> {
  if (!process.stdin.isTTY || !process.stderr.isTTY)
    throw new AgsError('usage.no-terminal', `Cannot ask without a terminal: ${question.trim()}`, {
      hint: 'Give the answer as a flag; see --help.',
    });
  const reader = createInterface({ input: process.stdin, output: process.stderr });
  try {
    return await new Promise((resolve, reject) => {
      // Ctrl-C and Ctrl-D both close the reader; Ctrl-C also rejects the question.
      const cancel = (): void => reject(new AgsError('prompt.cancelled', 'Cancelled.'));
      reader.once('close', cancel);
      reader.question(question).then((answer) => resolve(answer.trim()), cancel);
    });
  } catch (error) {
    process.stderr.write('\n');
    throw error;
  } finally {
    reader.close();
  }
}
