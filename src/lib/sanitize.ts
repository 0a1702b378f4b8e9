// lib/sanitize.ts: makes text that an agent could have written safe to show on a terminal or a page.
// Invariant: the output contains no control character but newline and tab, no escape sequence but a complete SGR colour (and that only on
// request), and no invisible character that changes how its neighbours are read.
// An ESC that does not begin a colour is made visible, so the text after it is plain text: no sequence has to be parsed to be harmless.
// The result is for reading; it cannot be turned back.

export interface Sanitizer {
  /** Takes the next chunk of a stream; returns the text that can be shown so far. */
  push(chunk: string): string;
  /** Returns the text held back, closes an open colour, and resets the state. */
  end(): string;
}

export function createSanitizer(options: { maxLine?: number; keepColour?: boolean } = {}): Sanitizer {
  const maxLine = options.maxLine ?? 4096;
  const keepColour = options.keepColour ?? false;
  const token = keepColour ? TOKEN_OR_COLOUR : TOKEN;
  const unfinished = keepColour ? UNFINISHED_OR_COLOUR : UNFINISHED;
  let held = '';
  let column = 0;
  let cut = false;
  let dropped = 0;
  let coloured = false;
  let afterEmoji = false;

  function push(chunk: string): string {
    if (chunk === '') return '';
    if (held === '' && !cut && !STREAM_UNSAFE.test(chunk) && fits(chunk)) {
      const newline = chunk.lastIndexOf('\n');
      column = newline < 0 ? column + chunk.length : chunk.length - newline - 1;
      afterEmoji = ENDS_IN_EMOJI.test(chunk.slice(-2));
      return chunk;
    }
    const text = held + chunk;
    held = unfinished.exec(text.slice(-LONGEST_HELD))?.[0] ?? '';
    return clean(text.slice(0, text.length - held.length));
  }

  function end(): string {
    const rest = clean(held) + closeLine() + (coloured ? RESET : '');
    held = '';
    column = 0;
    coloured = false;
    afterEmoji = false;
    return rest;
  }

  function fits(chunk: string): boolean {
    if (column + chunk.length <= maxLine) return true;
    let start = -column;
    for (let at = chunk.indexOf('\n'); at >= 0; at = chunk.indexOf('\n', at + 1)) {
      if (at - start > maxLine) return false;
      start = at + 1;
    }
    return chunk.length - start <= maxLine;
  }

  function clean(text: string): string {
    let out = '';
    let at = 0;
    while (at < text.length) {
      if (cut) {
        const next = lineEnd(text, at);
        dropped += next - at;
        at = next;
      }
      token.lastIndex = at;
      const match = token.exec(text);
      const found = match?.index ?? text.length;
      if (found > at) {
        out += plain(text.slice(at, found));
        at = found;
        if (cut) continue;
      }
      if (match) {
        out += special(match[0]);
        at += match[0].length;
      }
    }
    return out;
  }

  function special(piece: string): string {
    const emoji = afterEmoji;
    afterEmoji = false;
    if (piece === '\n' || piece === '\r\n') {
      const marker = closeLine();
      column = 0;
      return `${marker}\n`;
    }
    // Terminals and people expect the emoji form of a sign to pass; one selector after one sign hides nothing.
    if (piece === EMOJI_FORM && emoji) return whole(piece, piece);
    if (piece.length === 1 || piece.charAt(0) !== ESC) return whole(escapeOf(piece), piece);
    const shown = whole(piece, piece);
    if (!cut) coloured = !/^[0;]*m$/.test(piece.slice(2));
    return shown;
  }

  function plain(run: string): string {
    afterEmoji = ENDS_IN_EMOJI.test(run.slice(-2));
    if (column + run.length <= maxLine) return whole(run, run);
    // Half a surrogate pair is not a character.
    const room = run.slice(0, maxLine - column).replace(/[\uD800-\uDBFF]$/, '');
    return room + cutHere(run.length - room.length);
  }

  function whole(shown: string, source: string): string {
    if (column + shown.length > maxLine) return cutHere(source.length);
    column += shown.length;
    return shown;
  }

  function cutHere(characters: number): string {
    cut = true;
    dropped = characters;
    // The colour's end may be in the dropped part.
    const reset = coloured ? RESET : '';
    coloured = false;
    return `${reset}…`;
  }

  function closeLine(): string {
    const marker = cut ? `[${dropped} more characters cut]` : '';
    cut = false;
    dropped = 0;
    return marker;
  }

  return { push, end };
}

/** For one line: a name, a message. Newline and tab become `\n` and `\t`; invisible characters become visible. */
export function visible(text: string): string {
  return LINE_UNSAFE.test(text) ? text.replace(LINE_UNSAFE_ALL, escapeOf) : text;
}

/** The code points in a source text that are invisible or reorder the text, each once: "U+202E". */
export function invisibleIn(text: string): string[] {
  if (!STREAM_UNSAFE.test(text)) return [];
  const found = text.replace(HARMLESS_IN_SOURCE, '').match(STREAM_UNSAFE_ALL) ?? [];
  return [...new Set(found)].map(codePoint);
}

/** The end of the line that contains `at`, before its line break. */
function lineEnd(text: string, at: number): number {
  const newline = text.indexOf('\n', at);
  if (newline < 0) return text.length;
  return newline > at && text.charAt(newline - 1) === '\r' ? newline - 1 : newline;
}

function escapeOf(char: string): string {
  if (char === '\n') return '\\n';
  if (char === '\t') return '\\t';
  if (char === '\r') return '\\r';
  const code = char.codePointAt(0) ?? 0;
  return code < 0xa0 ? `\\x${code.toString(16).padStart(2, '0')}` : `<${codePoint(char)}>`;
}

function codePoint(char: string): string {
  return `U+${(char.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}`;
}

const ESC = '\u001b';
const RESET = `${ESC}[0m`;
const EMOJI_FORM = '\uFE0F';
const ENDS_IN_EMOJI = /\p{Emoji}$/u;
// Format characters (bidi, zero width, tags), separators, code points without a glyph, and halves of surrogate pairs.
const UNSEEN = String.raw`\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\p{Cs}`;
// Every control character but newline and tab, and the above.
const UNSAFE = String.raw`[^\P{Cc}\n\t]|[${UNSEEN}]`;
// In a name or message, a blank other than a plain space is deceptive too.
const BLANKS = String.raw`\u00A0\u1680\u2000-\u200A\u202F\u205F\u2800\u3000`;
const STREAM_UNSAFE = new RegExp(UNSAFE, 'u');
const STREAM_UNSAFE_ALL = new RegExp(UNSAFE, 'gu');
const LINE_UNSAFE = new RegExp(String.raw`[\p{Cc}${UNSEEN}${BLANKS}]`, 'u');
const LINE_UNSAFE_ALL = new RegExp(LINE_UNSAFE.source, 'gu');
// A byte order mark at the start, line ends, form feeds, the emoji form and joined emoji are ordinary in source files.
const HARMLESS_IN_SOURCE =
  /^\uFEFF|\r(?=\n)|\f|(?<=\p{Emoji})\uFE0F|(?<=\p{Extended_Pictographic}\uFE0F?|\p{Emoji_Modifier})\u200D(?=\p{Extended_Pictographic})/gu;
// A longer sequence is not a colour. The bound also limits the memory held between chunks.
const COLOUR_START = String.raw`${ESC}\[[0-9;:]{0,64}`;
const LONGEST_HELD = 66;
const TOKEN = new RegExp(String.raw`\r?\n|${UNSAFE}`, 'gu');
const TOKEN_OR_COLOUR = new RegExp(String.raw`\r?\n|${COLOUR_START}m|${UNSAFE}`, 'gu');
const UNFINISHED = /(?:\r|[\uD800-\uDBFF])$/;
const UNFINISHED_OR_COLOUR = new RegExp(String.raw`(?:${ESC}|${COLOUR_START}|\r|[\uD800-\uDBFF])$`);
