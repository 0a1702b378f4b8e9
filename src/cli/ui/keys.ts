// cli/ui/keys.ts: turns the bytes of a terminal into keys. A sequence may come in pieces; a paste is one key, so that pasted text
// presses nothing.
import { StringDecoder } from 'node:string_decoder';

export type Key =
  /** A printable character. */
  | { readonly name: 'char'; readonly text: string }
  | { readonly name: 'paste'; readonly text: string }
  | { readonly name: KeyName };

export type KeyName =
  | 'up'
  | 'down'
  | 'left'
  | 'right'
  | 'page-up'
  | 'page-down'
  | 'home'
  | 'end'
  | 'tab'
  | 'back-tab'
  | 'enter'
  | 'escape'
  | 'backspace'
  | 'delete'
  | `ctrl-${string}`
  /** A sequence that has no meaning here. */
  | 'unknown';

export interface KeyReader {
  push(chunk: Buffer): void;
  close(): void;
}

/** A lone ESC is the Escape key if nothing follows it within this time. */
const ESCAPE_MS = 40;

export function createKeyReader(onKey: (key: Key) => void): KeyReader {
  const decoder = new StringDecoder('utf8');
  let held = '';
  let timer: NodeJS.Timeout | null = null;

  function read(final: boolean): void {
    while (held !== '') {
      const next = nextKey(held, final);
      if (next === null) return;
      held = held.slice(next.length);
      if (next.key !== null) onKey(next.key);
    }
  }

  return {
    push(chunk) {
      if (timer !== null) clearTimeout(timer);
      timer = null;
      held += decoder.write(chunk);
      read(false);
      // The rest of a paste may take its time; the rest of a key comes at once.
      if (held !== '' && !held.startsWith(PASTE))
        timer = setTimeout(() => {
          timer = null;
          read(true);
        }, ESCAPE_MS);
    },
    close() {
      if (timer !== null) clearTimeout(timer);
    },
  };
}

const ESC = '\u001b';
const PASTE = `${ESC}[200~`;
const PASTE_END = `${ESC}[201~`;
const MAX_PASTE = 64 * 1024;

/** null: the text is the beginning of something. With `final`, nothing more is to come. */
function nextKey(text: string, final: boolean): { key: Key | null; length: number } | null {
  if (!text.startsWith(ESC)) {
    const char = String.fromCodePoint(text.codePointAt(0) ?? 0);
    return { key: plainKey(char), length: char.length };
  }
  if (text.startsWith(PASTE)) {
    const end = text.indexOf(PASTE_END);
    if (end < 0 && !final && text.length < MAX_PASTE) return null;
    const pasted = text.slice(PASTE.length, end < 0 ? text.length : end);
    return { key: { name: 'paste', text: pasted }, length: end < 0 ? text.length : end + PASTE_END.length };
  }
  const whole = SEQUENCE.exec(text)?.[0];
  if (whole !== undefined) return { key: { name: SEQUENCES[whole.slice(1)] ?? 'unknown' }, length: whole.length };
  if (UNFINISHED.test(text)) return final ? { key: { name: 'escape' }, length: text.length } : null;
  // Escape and a key typed quickly after it, which a slow connection delivers together. Alt and a key look the same, and have no meaning here.
  return { key: { name: 'escape' }, length: 1 };
}

/** CSI and SS3 sequences, and the strings with which terminals answer (OSC, DCS, SOS, PM, APC). */
const SEQUENCE = /^\u001b(?:\[[0-9;:<=>?]*[ -/]*[@-~]|O[A-Za-z]|[\]PX^_][^\u0007\u001b]{0,1000}(?:\u0007|\u001b\\))/;
const UNFINISHED = /^\u001b(?:\[[0-9;:<=>?]*[ -/]*|O|[\]PX^_][^\u0007\u001b]{0,1000}\u001b?)?$/;

const SEQUENCES: Readonly<Record<string, KeyName>> = {
  '[A': 'up',
  '[B': 'down',
  '[C': 'right',
  '[D': 'left',
  OA: 'up',
  OB: 'down',
  OC: 'right',
  OD: 'left',
  '[H': 'home',
  '[F': 'end',
  OH: 'home',
  OF: 'end',
  '[1~': 'home',
  '[4~': 'end',
  '[7~': 'home',
  '[8~': 'end',
  '[3~': 'delete',
  '[5~': 'page-up',
  '[6~': 'page-down',
  '[Z': 'back-tab',
};

function plainKey(char: string): Key {
  switch (char) {
    case '\r':
    case '\n':
      return { name: 'enter' };
    case '\t':
      return { name: 'tab' };
    case '\u007f':
    case '\b':
      return { name: 'backspace' };
  }
  const code = char.codePointAt(0) ?? 0;
  if (code > 0 && code <= 26) return { name: `ctrl-${String.fromCodePoint(96 + code)}` };
  return code < 32 || (code >= 0x80 && code < 0xa0) ? { name: 'unknown' } : { name: 'char', text: char };
}
