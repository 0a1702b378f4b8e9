// run/output-reader.ts: what a program in a sandbox prints, made harmless and kept within bounds.
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
  /** No more comes. */
  end(): void;
  tail(): readonly string[];
  /** The first line that tells of an error, or the last one. */
  line(): string | null;
}

/** On its way to the log at `path` and to whoever looks on. */
export function openPrinted(path: string, onText: (text: string) => void): Printed {
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

/** Nobody waits here who could be told of a full disk; whoever writes what came of it will be. */
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
