// web/src/actions/registry.ts: the one table of actions. Shortcuts, the command palette and the shortcut sheet read it;
// pages attach the behaviour with `useAction`. Users' custom shortcuts are stored by action id, so ids never change.
import { useEffect, useRef } from 'react';
import { readPreference, usePreference, writePreference } from '../look/preferences.ts';

export type Scope = 'Everywhere' | 'Tasks' | 'Task' | 'Review' | 'Network';

interface ActionInfo {
  readonly label: string;
  readonly scope: Scope;
  /** Alternatives, such as `mod+k` (Ctrl or ⌘), `shift+j`, `g t` (a sequence) or `?`. */
  readonly keys: readonly string[];
}

const action = (scope: Scope, label: string, ...keys: string[]): ActionInfo => ({ label, scope, keys });

const DIGITS = [1, 2, 3, 4, 5, 6, 7, 8, 9] as const;

export const ACTIONS = {
  palette: action('Everywhere', 'Search or run a command', 'mod+k'),
  keys: action('Everywhere', 'Show keyboard shortcuts', '?'),
  filter: action('Everywhere', 'Search this page', '/'),
  compose: action('Everywhere', 'New goal', 'c'),
  'go-tasks': action('Everywhere', 'Go to tasks', 'g t'),
  'go-network': action('Everywhere', 'Go to network', 'g n'),
  'go-settings': action('Everywhere', 'Go to settings', 'g ,'),
  'next-needs-you': action('Everywhere', 'Next task that needs you', 'shift+j'),
  'previous-needs-you': action('Everywhere', 'Previous task that needs you', 'shift+k'),
  'nth-needs-you': action('Everywhere', 'Nth task that needs you', ...DIGITS.map((n) => `alt+${n}`)),
  'add-project': action('Everywhere', 'Add project'),
  theme: action('Everywhere', 'Toggle light and dark theme'),
  up: action('Everywhere', 'Go back: from a review to its task, then to tasks', 'escape'),

  'row-down': action('Tasks', 'Next row', 'j'),
  'row-up': action('Tasks', 'Previous row', 'k'),
  'row-open': action('Tasks', 'Open', 'enter'),
  'row-review': action('Tasks', 'Review changes', 'o'),
  'row-select': action('Tasks', 'Select', 'x'),
  'row-stop': action('Tasks', 'Stop', 's'),
  'row-restart': action('Tasks', 'Restart', 'r'),
  'row-fork': action('Tasks', 'Fork', 'f'),
  'row-answer': action('Tasks', 'Answer or allow', 'a'),
  'row-remove': action('Tasks', 'Remove', 'e'),

  message: action('Task', 'Message the agent', 'i'),
  terminal: action('Task', 'Open terminal', 't'),
  logs: action('Task', 'Open logs', 'l'),
  review: action('Task', 'Review changes', 'o'),
  latest: action('Task', 'Jump to latest', '.'),
  'turn-before': action('Task', 'Previous turn', '['),
  'turn-after': action('Task', 'Next turn', ']'),
  stop: action('Task', 'Stop', 's'),
  restart: action('Task', 'Restart', 'r'),
  fork: action('Task', 'Fork', 'f'),
  'undo-merge': action('Task', 'Undo merge'),
  'allow-run': action('Task', 'Allow host for this run', 'a'),

  'line-down': action('Review', 'Next line', 'j'),
  'line-up': action('Review', 'Previous line', 'k'),
  'hunk-after': action('Review', 'Next hunk', 'n'),
  'hunk-before': action('Review', 'Previous hunk', 'p'),
  'file-after': action('Review', 'Next file', ']'),
  'file-before': action('Review', 'Previous file', '['),
  'next-risky': action('Review', 'Next file that can run code', '!'),
  viewed: action('Review', 'Mark as viewed, go to next file', 'v'),
  'take-file': action('Review', 'Include or exclude the file', 'space'),
  'take-hunk': action('Review', 'Include or exclude the hunk', 'h'),
  comment: action('Review', 'Comment on the line', 'c'),
  'send-comments': action('Review', 'Send comments', 'shift+c'),
  find: action('Review', 'Find in the diff', 'mod+f'),
  layout: action('Review', 'Switch unified and split layout', 'u'),
  space: action('Review', 'Hide or show whitespace changes', 'w'),
  'copy-link': action('Review', 'Copy a link to the line', 'y'),
  fold: action('Review', 'Collapse or expand the file', 'z'),
  checks: action('Review', 'Run checks', 't'),
  merge: action('Review', 'Merge', 'm'),

  'network-allow': action('Network', 'Allow for this run', 'a'),
  'network-always': action('Network', 'Always allow in this project', 'shift+a'),
  'network-block': action('Network', 'Keep blocked', 'b'),
  'network-down': action('Network', 'Next host', 'j'),
  'network-up': action('Network', 'Previous host', 'k'),
} as const satisfies Readonly<Record<string, ActionInfo>>;

export type ActionId = keyof typeof ACTIONS;

/** In the order of the shortcut sheet. */
export const ACTION_IDS = Object.keys(ACTIONS) as ActionId[];

/** Receives the key that was pressed, for actions with several keys. */
type Run = (pressed: string) => void;
const bound = new Map<ActionId, Run[]>();

/** Binds the action while the component is mounted. The most recent binding wins. */
export function useAction(id: ActionId, run: Run, enabled = true): void {
  const latest = useRef(run);
  useEffect(() => {
    latest.current = run;
  });
  useEffect(() => {
    if (!enabled) return undefined;
    const call: Run = (pressed) => latest.current(pressed);
    bound.set(id, [...(bound.get(id) ?? []), call]);
    return () => {
      bound.set(
        id,
        (bound.get(id) ?? []).filter((one) => one !== call),
      );
    };
  }, [id, enabled]);
}

export const isBound = (id: ActionId): boolean => (bound.get(id)?.length ?? 0) > 0;

/** Returns false if nothing on the page is bound to the action. */
export function runAction(id: ActionId, pressed = ''): boolean {
  const call = bound.get(id)?.at(-1);
  call?.(pressed);
  return call !== undefined;
}

type CustomKeys = Partial<Record<ActionId, readonly string[]>>;

export const keysOf = (id: ActionId): readonly string[] =>
  readPreference<CustomKeys>('keys', {})[id] ?? (ACTIONS[id] satisfies ActionInfo).keys;

export function useKeysOf(): (id: ActionId) => readonly string[] {
  const [rebound] = usePreference<CustomKeys>('keys', {});
  return (id) => rebound[id] ?? (ACTIONS[id] satisfies ActionInfo).keys;
}

/** null restores the default. */
export function rebind(id: ActionId, keys: readonly string[] | null): void {
  const { [id]: _old, ...rest } = readPreference<CustomKeys>('keys', {});
  writePreference('keys', keys === null ? rest : { ...rest, [id]: keys });
}
