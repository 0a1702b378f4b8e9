// cli/ui/dialog.ts: questions below a view: one with a list of answers, one for a line of text.
// Invariant: nothing is chosen by a letter. A list starts on its first answer, which changes nothing; only arrows or Tab and then
// Enter choose another. Pasted text chooses nothing.
import { visible } from '../../lib/sanitize.ts';
import { widthOf } from '../terminal/format.ts';
import { BLANK, type Line, span, wrapLine } from './cells.ts';
import type { Key } from './keys.ts';
import type { Hint } from './view.ts';

export interface Dialog {
  readonly title: string;
  lines(columns: number): readonly Line[];
  hints(): readonly Hint[];
  key(key: Key): void;
  /** Within the lines. */
  cursor(columns: number): { x: number; y: number } | null;
}

export interface Choice {
  readonly label: string;
  act(): void;
}

/** `cancel` is the first answer, and that of Escape. */
export function askChoice(question: {
  title: string;
  text: readonly Line[];
  cancel: Choice;
  choices: readonly Choice[];
}): Dialog {
  const all = [question.cancel, ...question.choices];
  let at = 0;
  const move = (by: number): void => void (at = (at + by + all.length) % all.length);
  return {
    title: question.title,
    lines: (columns) => [
      ...question.text.flatMap((line) => wrapLine(line, columns)),
      ...(question.text.length === 0 ? [] : [BLANK]),
      ...all.map(({ label }, n): Line =>
        n === at ? [span('> '), span(` ${label} `, 'reverse')] : [span('   '), span(label)],
      ),
    ],
    hints: () =>
      all.length === 1
        ? [['Enter', 'close']]
        : [
            ['Up Down', 'choose'],
            ['Enter', all[at]?.label ?? ''],
            ['Esc', question.cancel.label],
          ],
    key({ name }) {
      if (name === 'down' || name === 'right' || name === 'tab') move(1);
      else if (name === 'up' || name === 'left' || name === 'back-tab') move(-1);
      else if (name === 'enter') all[at]?.act();
      else if (name === 'escape') question.cancel.act();
    },
    cursor: () => null,
  };
}

/** `suggestions` fill the line with Up and Down, to be sent or edited. */
export function askText(question: {
  title: string;
  text: readonly Line[];
  suggestions: readonly string[];
  done(text: string): void;
  cancel(): void;
}): Dialog {
  let typed: string[] = [];
  let at = 0;
  let suggested = -1;
  const set = (text: string): void => {
    typed = [...text];
    at = typed.length;
  };
  const insert = (text: string): void => {
    const more = [...text];
    typed.splice(at, 0, ...more);
    at += more.length;
  };
  const suggest = (by: number): void => {
    const { suggestions } = question;
    if (suggestions.length === 0) return;
    suggested = (suggested + by + suggestions.length) % suggestions.length;
    set(suggestions[suggested] ?? '');
  };
  /** The part of the line around the cursor that fits. */
  const shown = (columns: number): { text: string; x: number } => {
    const room = Math.max(4, columns - 4);
    const before = visible(typed.slice(0, at).join(''));
    let start = 0;
    const chars = [...before];
    while (widthOf(chars.slice(start).join('')) > room - 1) start++;
    const left = chars.slice(start).join('');
    return { text: `${left}${visible(typed.slice(at).join(''))}`, x: 2 + widthOf(left) };
  };
  const textLines = (columns: number): Line[] => question.text.flatMap((line) => wrapLine(line, columns));
  return {
    title: question.title,
    lines: (columns) => [...textLines(columns), [span('> ', 'bold'), span(shown(columns).text)]],
    hints: () => [
      ['Enter', 'send'],
      ...(question.suggestions.length === 0 ? [] : ([['Up Down', 'suggested answers']] as const)),
      ['Esc', 'cancel'],
    ],
    key(key) {
      if (key.name === 'char') insert(key.text);
      else if (key.name === 'paste') insert(key.text.replaceAll(/\r\n?/g, '\n'));
      else if (key.name === 'enter') {
        const text = typed.join('').trim();
        if (text !== '') question.done(text);
      } else if (key.name === 'escape') question.cancel();
      else if (key.name === 'backspace' && at > 0) typed.splice(--at, 1);
      else if (key.name === 'delete') typed.splice(at, 1);
      else if (key.name === 'left') at = Math.max(0, at - 1);
      else if (key.name === 'right') at = Math.min(typed.length, at + 1);
      else if (key.name === 'home' || key.name === 'ctrl-a') at = 0;
      else if (key.name === 'end' || key.name === 'ctrl-e') at = typed.length;
      else if (key.name === 'ctrl-u') [typed, at] = [typed.slice(at), 0];
      else if (key.name === 'up') suggest(-1);
      else if (key.name === 'down' || key.name === 'tab') suggest(1);
    },
    cursor: (columns) => ({ x: shown(columns).x, y: textLines(columns).length }),
  };
}
