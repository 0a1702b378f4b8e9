// lib/screen-filter.ts: filters the output of a sandboxed program to the user's terminal: it may draw on the screen, and nothing else.
// Invariant: no output, however it is split, reaches past the screen: the clipboard, the printer, the window, links whose address differs
// from their text, or an enclosing terminal. Sequences that are not known to be harmless are dropped.
// Memory is bounded: a longer sequence than a small maximum is dropped.

const ESC = 0x1b;
const BEL = 0x07;
const CAN = 0x18;
const SUB = 0x1a;
const LONGEST = 512;

/** Strings that end with ST: OSC, DCS, SOS, PM, APC, and the title of screen(1). By the byte after ESC, and as C1 characters. */
const STRINGS = new Set([']', 'P', 'X', '^', '_', 'k'].map((char) => char.charCodeAt(0)));
const C1_STRINGS = new Set([0x90, 0x98, 0x9d, 0x9e, 0x9f]);
const C1_CSI = 0x9b;

/** Window title, colour queries, prompt marks. */
const HARMLESS_OSC = /^\](?:[012];[ -~\u00a0-\uffff]*|1[012];\?|4;\d+;\?|133;[A-D][ -~]*)$/;
/** Window operations, and media copy, which prints. */
const HARMFUL_FINALS = new Set(['t', 'i'].map((char) => char.charCodeAt(0)));

type State = 'text' | 'escape' | 'control' | 'string' | 'string-escape' | 'c1';

export function createScreenFilter(): (chunk: Buffer) => Buffer {
  let state: State = 'text';
  /** The sequence so far; null: it is being dropped. */
  let held: number[] | null = [];
  /** The current string is an OSC, which BEL also ends. */
  let isOsc = false;
  /** Missing bytes of the current UTF-8 character. */
  let needs = 0;

  return (chunk) => {
    const out: Buffer[] = [];
    /** Start of the text that passes unchanged. */
    let from = 0;
    const flush = (to: number): void => {
      if (to > from) out.push(chunk.subarray(from, to));
    };
    const begin = (next: State, first: number): void => {
      state = next;
      held = [first];
    };
    const finish = (pass: boolean, at: number): void => {
      if (pass && held !== null) out.push(Buffer.from(held));
      state = 'text';
      held = [];
      from = at + 1;
    };
    const hold = (byte: number): void => {
      if (held !== null && held.push(byte) > LONGEST) held = null;
    };

    for (let at = 0; at < chunk.length; at++) {
      const byte = chunk[at] as number;
      if (state === 'text') {
        if (byte === ESC) {
          flush(at);
          needs = 0;
          begin('escape', byte);
        } else if (byte === 0xc2 && needs === 0) {
          flush(at);
          begin('c1', byte);
        } else if (byte < 0x80) needs = 0;
        else if (needs > 0 && byte < 0xc0) needs -= 1;
        else if (byte >= 0xc3) needs = byte >= 0xf0 ? 3 : byte >= 0xe0 ? 2 : 1;
        else {
          // An 8-bit control character, which some terminals obey.
          flush(at);
          out.push(UNKNOWN);
          from = at + 1;
        }
        continue;
      }
      if (state === 'c1') {
        if (C1_STRINGS.has(byte)) {
          isOsc = byte === 0x9d;
          begin('string', 0);
        } else if (byte === C1_CSI) {
          begin('control', ESC);
          hold(0x5b);
        } else if (byte >= 0x80 && byte < 0xa0) finish(false, at);
        else if (byte >= 0xa0 && byte < 0xc0) {
          hold(byte);
          finish(true, at);
        } else {
          finish(true, at - 1);
          at -= 1;
        }
        continue;
      }
      // CAN and SUB end any sequence on every terminal.
      if (byte === CAN || byte === SUB) {
        finish(false, at);
        continue;
      }
      if (state === 'escape') {
        if (byte === ESC) begin('escape', byte);
        else if (STRINGS.has(byte)) {
          isOsc = byte === 0x5d;
          begin('string', byte);
        } else if (byte === 0x5b) {
          state = 'control';
          hold(byte);
        } else if (byte >= 0x20 && byte < 0x30) hold(byte);
        else {
          hold(byte);
          // ESC % leaves UTF-8; ESC \\ ends a dropped string.
          finish(held?.[1] !== 0x25 && byte >= 0x30 && byte < 0x7f && byte !== 0x5c, at);
        }
      } else if (state === 'control') {
        if (byte === ESC) begin('escape', byte);
        else if (byte >= 0x40 && byte < 0x7f) {
          hold(byte);
          finish(!HARMFUL_FINALS.has(byte), at);
        } else if (byte < 0x20 || byte >= 0x7f) finish(false, at);
        else hold(byte);
      } else if (state === 'string-escape') {
        if (byte === 0x5c) finishString(at);
        else {
          // Any byte but ST aborts the string and starts a new sequence.
          begin('escape', ESC);
          at -= 1;
        }
      } else if (byte === ESC) state = 'string-escape';
      else if (byte === BEL && isOsc) finishString(at);
      else hold(byte);
    }
    if (state === 'text') flush(chunk.length);
    return out.length === 1 && out[0] !== undefined ? out[0] : Buffer.concat(out);

    function finishString(at: number): void {
      const text = held === null ? '' : Buffer.from(held).toString('utf8');
      if (HARMLESS_OSC.test(text)) out.push(Buffer.from(`\x1b${text}\x1b\\`));
      finish(false, at);
    }
  };
}

const UNKNOWN = Buffer.from('\ufffd');
