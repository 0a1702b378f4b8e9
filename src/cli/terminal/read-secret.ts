// cli/terminal/read-secret.ts: reads a key from the terminal without showing it, or from standard input.
import { AgsError } from '../../protocol/errors.ts';
import type { Context } from '../verb.ts';

/** Ctrl-C and Ctrl-D end the command, as at any other question. */
export async function readSecret(question: string, ctx: Context): Promise<string> {
  const { stdin, stderr } = ctx;
  stderr.write(question);
  stdin.setRawMode(true);
  stdin.resume();
  try {
    return await new Promise((resolve, reject) => {
      let typed = '';
      const end = (act: () => void): void => {
        stdin.off('data', read);
        stdin.off('end', cancel);
        act();
      };
      const cancel = (): void => end(() => reject(new AgsError('prompt.cancelled', 'Cancelled.')));
      const read = (chunk: Buffer): void => {
        // Some terminals put marks around pasted text.
        for (const char of chunk.toString('utf8').replaceAll(/\x1b\[20[01]~/g, '')) {
          if (char === '\r' || char === '\n') return end(() => resolve(typed));
          if (char === '\x03' || (char === '\x04' && typed === '')) return cancel();
          if (char === '\x7f' || char === '\b') typed = typed.slice(0, -1);
          else if (char === '\x15') typed = '';
          else if (char >= ' ') typed += char;
        }
      };
      stdin.on('data', read);
      stdin.once('end', cancel);
    });
  } finally {
    stdin.setRawMode(false);
    stdin.pause();
    stderr.write('\n');
  }
}

/** Reads all input; the caller refuses more than one line. */
export async function readPiped(ctx: Context): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of ctx.stdin as AsyncIterable<Buffer>) {
    chunks.push(chunk);
    bytes += chunk.length;
    if (bytes > MOST_BYTES) break;
  }
  return Buffer.concat(chunks).toString('utf8');
}

const MOST_BYTES = 64 * 1024;
