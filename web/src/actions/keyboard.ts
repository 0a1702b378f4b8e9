// web/src/actions/keyboard.ts: turns key presses into actions.
// Invariant: single letters never trigger an action while the user types. The user can also turn them off.
import { useEffect } from 'react';
import { readPreference } from '../look/preferences.ts';
import { ACTION_IDS, isBound, keysOf, runAction } from './registry.ts';

const SEQUENCE_MS = 1200;
// A toast also has the dialog role but does not capture the keyboard.
const OWNS_KEYBOARD = '[role=dialog]:not([data-toast]),[role=menu],[role=listbox]';

export function useKeyboard(): void {
  useEffect(() => {
    let before: { key: string; atMs: number } | null = null;
    const onKey = (event: KeyboardEvent): void => {
      if (event.defaultPrevented || event.isComposing) return;
      const pressed = keyName(event);
      if (pressed === null) return;
      const single = !event.ctrlKey && !event.metaKey && !event.altKey;
      if (single && typing(event.target)) {
        if (pressed === 'escape' && event.target instanceof HTMLElement && !inTerminal(event.target))
          event.target.blur();
        return;
      }
      if (inTerminal(event.target)) return;
      if (single && document.querySelector(OWNS_KEYBOARD) !== null) return;
      if (single && pressed.length === 1 && !readPreference('single-keys', true)) return;
      // Enter and Space activate the focused control.
      if (
        (pressed === 'enter' || pressed === 'space') &&
        event.target instanceof Element &&
        event.target.closest('a,button,[role=checkbox],[role=switch],[role=radio]') !== null
      )
        return;
      const sequence =
        before !== null && event.timeStamp - before.atMs < SEQUENCE_MS ? `${before.key} ${pressed}` : null;
      before = single ? { key: pressed, atMs: event.timeStamp } : null;
      const wanted = [sequence, pressed].find(
        (keys) => keys !== null && ACTION_IDS.some((id) => keysOf(id).includes(keys) && isBound(id)),
      );
      if (wanted == null) return;
      const id = ACTION_IDS.findLast((one) => keysOf(one).includes(wanted) && isBound(one));
      if (id === undefined || !runAction(id, wanted)) return;
      before = null;
      event.preventDefault();
    };
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  }, []);
}

/** For example `mod+k`, `shift+j` or `?`; null for a modifier key alone. */
export function keyName(event: KeyboardEvent): string | null {
  const { key } = event;
  if (['Shift', 'Control', 'Alt', 'Meta', 'Dead', 'Unidentified'].includes(key)) return null;
  // Some keyboard layouts turn Alt plus a digit into another character.
  const digit = event.altKey ? /^Digit(\d)$/.exec(event.code)?.[1] : undefined;
  const letter = key.length === 1 && key.toLowerCase() !== key.toUpperCase();
  const parts = [
    event.ctrlKey || event.metaKey ? 'mod' : '',
    event.altKey ? 'alt' : '',
    event.shiftKey && (letter || key.length > 1) ? 'shift' : '',
    key === ' ' ? 'space' : (digit ?? key.toLowerCase()),
  ];
  return parts.filter((part) => part !== '').join('+');
}

const MAC = navigator.platform.startsWith('Mac');
const LABELS: Readonly<Record<string, string>> = {
  mod: MAC ? '⌘' : 'Ctrl',
  alt: MAC ? '⌥' : 'Alt',
  shift: 'Shift',
  enter: 'Enter',
  escape: 'Esc',
  space: 'Space',
};

/** Labels to display: ['Ctrl', 'K'] or ['G', 'then', 'T']. */
export function keyParts(keys: string): string[] {
  return keys
    .split(' ')
    .flatMap((one, at) => [
      ...(at > 0 ? ['then'] : []),
      ...one.split('+').map((part) => LABELS[part] ?? part.toUpperCase()),
    ]);
}

function typing(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement &&
    (target.isContentEditable || target.matches('textarea,select,input:not([type=checkbox],[type=radio])'))
  );
}

function inTerminal(target: EventTarget | null): boolean {
  return target instanceof Element && target.closest('.xterm') !== null;
}
