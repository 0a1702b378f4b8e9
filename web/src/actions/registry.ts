// web/src/actions/registry.ts: everything that can be done by a key, once. Shortcuts, the command palette and the sheet of keys
// are made of this table; a page says what happens by `useAction`.
import { useEffect, useRef } from 'react';
import { readPreference, usePreference, writePreference } from '../look/preferences.ts';

export type Scope = 'Everywhere' | 'Tasks' | 'Task' | 'Review' | 'Network';

interface ActionInfo {
  readonly label: string;
  readonly scope: Scope;
  /** One of these: `mod+k` (Ctrl or ⌘), `shift+j`, `g t` (one after the other), `?`. */
  readonly keys: readonly string[];
}

const action = (scope: Scope, label: string, ...keys: string[]): ActionInfo => ({ label, scope, keys });

const DIGITS = [1, 2, 3, 4, 5, 6, 7, 8, 9] as const;

export const ACTIONS = {
  palette: action('Everywhere', 'Search or run a command', 'mod+k'),
  keys: action('Everywhere', 'Show the keys', '?'),
  filter: action('Everywhere', 'Search in what is shown', '/'),
  compose: action('Everywhere', 'New goal', 'c'),
  'go-tasks': action('Everywhere', 'Go to tasks', 'g t'),
  'go-network': action('Everywhere', 'Go to network', 'g n'),
  'go-settings': action('Everywhere', 'Go to settings', 'g ,'),
  'next-needs-you': action('Everywhere', 'Next task that needs you', 'shift+j'),
  'previous-needs-you': action('Everywhere', 'Previous task that needs you', 'shift+k'),
  'nth-needs-you': action('Everywhere', 'The first to ninth task that needs you', ...DIGITS.map((n) => `alt+${n}`)),
  'add-project': action('Everywhere', 'Add a project'),
  theme: action('Everywhere', 'Switch between light and dark'),
  up: action('Everywhere', 'One level up', 'escape'),

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
  terminal: action('Task', 'Terminal', 't'),
  logs: action('Task', 'Logs', 'l'),
  review: action('Task', 'Review changes', 'o'),
  latest: action('Task', 'Jump to the latest', '.'),
  'turn-before': action('Task', 'Previous turn', '['),
  'turn-after': action('Task', 'Next turn', ']'),
  stop: action('Task', 'Stop', 's'),
  restart: action('Task', 'Restart', 'r'),
  fork: action('Task', 'Fork', 'f'),
  'allow-run': action('Task', 'Allow the host for this run', 'a'),

  'line-down': action('Review', 'Next line', 'j'),
  'line-up': action('Review', 'Previous line', 'k'),
  'hunk-after': action('Review', 'Next part', 'n'),
  'hunk-before': action('Review', 'Previous part', 'p'),
  'file-after': action('Review', 'Next file', ']'),
  'file-before': action('Review', 'Previous file', '['),
  'next-risky': action('Review', 'Next file that can run code', '!'),
  viewed: action('Review', 'Mark as viewed and go on', 'v'),
  'take-file': action('Review', 'Take or leave the file', 'space'),
  'take-hunk': action('Review', 'Take or leave the part', 'h'),
  comment: action('Review', 'Comment on the line', 'c'),
  'send-comments': action('Review', 'Send the comments', 'shift+c'),
  find: action('Review', 'Find in the diff', 'mod+f'),
  layout: action('Review', 'Unified or split', 'u'),
  space: action('Review', 'Hide or show changes in white space', 'w'),
  'copy-link': action('Review', 'Copy a link to the line', 'y'),
  fold: action('Review', 'Fold or open the file', 'z'),
  checks: action('Review', 'Run the checks', 't'),
  merge: action('Review', 'Go to the merge button', 'm'),

  'network-allow': action('Network', 'Allow for this run', 'a'),
  'network-always': action('Network', 'Always allow in this project', 'shift+a'),
  'network-block': action('Network', 'Keep blocked', 'b'),
  'network-down': action('Network', 'Next host', 'j'),
  'network-up': action('Network', 'Previous host', 'k'),
} as const satisfies Readonly<Record<string, ActionInfo>>;

export type ActionId = keyof typeof ACTIONS;

/** In the order of the table, which is the order of the sheet. */
export const ACTION_IDS = Object.keys(ACTIONS) as ActionId[];

/** It is told by which key, where there are several. */
type Run = (pressed: string) => void;
const bound = new Map<ActionId, Run[]>();

/** While this component is there, the action does this. The last one that asked for it wins. */
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

/** Does it, if somebody on the page can. */
export function runAction(id: ActionId, pressed = ''): boolean {
  const call = bound.get(id)?.at(-1);
  call?.(pressed);
  return call !== undefined;
}

type Rebound = Partial<Record<ActionId, readonly string[]>>;

export const keysOf = (id: ActionId): readonly string[] =>
  readPreference<Rebound>('keys', {})[id] ?? (ACTIONS[id] satisfies ActionInfo).keys;

export function useKeysOf(): (id: ActionId) => readonly string[] {
  const [rebound] = usePreference<Rebound>('keys', {});
  return (id) => rebound[id] ?? (ACTIONS[id] satisfies ActionInfo).keys;
}

/** null: as it was at first. */
export function rebind(id: ActionId, keys: readonly string[] | null): void {
  const { [id]: _old, ...rest } = readPreference<Rebound>('keys', {});
  writePreference('keys', keys === null ? rest : { ...rest, [id]: keys });
}
