// run/output-reader.ts: the output of a program in a sandbox, sanitized and bounded.
import { StringDecoder } from 'node:string_decoder';
import { isDiskFull } from '../lib/error-code.ts';
import { createLines } from '../lib/stream/lines.ts';
import { createSanitizer } from '../lib/sanitize.ts';
import { openBoundedLog, type BoundedLog } from '../store/bounded-log.ts';

const LAST_LINES = 20;
const LINE_BYTES = 2000;

export interface Printed extends Disposable {
  bytes(chunk: Buffer): void;
  text(text: string): void;
  /** Call at the end of the output. */
  end(): void;
  tail(): readonly string[];
  /** The first line that reports an error, or the last line. */
  line(): string | null;
}

/** Writes the output to the log at `path` and passes it to `onText`. */
export function openOutput(path: string, onText: (text: string) => void): Printed {
  const log = openBoundedLog(path);
  const decoder = new StringDecoder('utf8');
  const sanitizer = createSanitizer();
  const tail: string[] = [];
  let trouble: string | null = null;
  let full = false;
  const lines = createLines(LINE_BYTES, (line) => {
    if (line.trim() === '') return;
    tail.push(line);
    if (tail.length > LAST_LINES) tail.shift();
    if (trouble === null && TROUBLE.test(line) && !NO_TROUBLE.test(line)) trouble = line;
  });
  const take = (text: string): void => {
    if (text === '') return;
    if (!full) full = !appended(log, text);
    lines.push(Buffer.from(text));
    onText(text);
  };
  return {
    bytes: (chunk) => take(sanitizer.push(decoder.write(chunk))),
    text: (text) => take(sanitizer.push(text)),
    end() {
      take(sanitizer.push(decoder.end()) + sanitizer.end());
      lines.end();
    },
    tail: () => tail,
    line: () => trouble ?? tail.at(-1) ?? null,
    [Symbol.dispose]: () => log[Symbol.dispose](),
  };
}

/** A full disk is not reported here: writing the result will report it. */
function appended(log: BoundedLog, text: string): boolean {
  try {
    log.append(text);
    return true;
  } catch (error) {
    if (isDiskFull(error)) return false;
    throw error;
  }
}

const TROUBLE =
  /(^|[^a-z])(error|errors|fail|failed|failure|exception|panicked|not ok|cannot|not found)([^a-z]|$)|[✗✖×]/i;
const NO_TROUBLE = /(^|\D)(0|no) (error|errors|fail|failed|failures)([^a-z]|$)/i;
