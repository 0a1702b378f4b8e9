// cli/terminal/read-secret.ts: reads a key from the terminal without showing it, or from standard input.
import type { Context } from '../verb.ts';

/** null: the user gave up. */
export async function readSecret(question: string, ctx: Context): Promise<string | null> {
  const { stdin, stderr } = ctx;
  stderr.write(question);
  stdin.setRawMode(true);
  stdin.resume();
  try {
    return await new Promise((resolve) => {
      let typed = '';
      const end = (value: string | null): void => {
        stdin.off('data', read);
        stdin.off('end', give);
        resolve(value);
      };
      const give = (): void => end(null);
      const read = (chunk: Buffer): void => {
        // Some terminals put marks around pasted text.
        for (const char of chunk.toString('utf8').replaceAll(/\x1b\[20[01]~/g, '')) {
          if (char === '\r' || char === '\n') return end(typed);
          if (char === '\x03' || (char === '\x04' && typed === '')) return end(null);
          if (char === '\x7f' || char === '\b') typed = typed.slice(0, -1);
          else if (char === '\x15') typed = '';
          else if (char >= ' ') typed += char;
        }
      };
      stdin.on('data', read);
      stdin.once('end', give);
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
