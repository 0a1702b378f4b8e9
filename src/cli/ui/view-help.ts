// cli/ui/view-help.ts: all keys of `ags ui`.
import { BLANK, type Line, pad, span } from './cells.ts';
import { createScroll } from './scroll.ts';
import type { View } from './view.ts';

export function createHelpView(): View {
  const scroll = createScroll({ atEnd: false, indent: 16 });
  scroll.reset(helpLines());
  return {
    title: () => [span('Keys', 'bold')],
    body: (size) => scroll.body(size),
    hints: () => [['Up Down', 'scroll']],
    key: (key) => scroll.key(key),
  };
}

const KEYS: readonly (readonly [string, readonly (readonly [string, string])[]])[] = [
  [
    'List',
    [
      ['Up Down, j k', 'select a task'],
      ['PgUp PgDn', 'a screen up or down; Home and End: first and last task'],
      ['A', 'tasks of this project, or of all projects'],
    ],
  ],
  [
    'The selected task',
    [
      ['Enter, l', 'its live log'],
      ['d', 'what it changed'],
      ['r', 'answer its question, or send it a message'],
      ['n', 'allow or deny a host that it waits for, or that was refused'],
      ['t', 'attach to its terminal (ags attach); Ctrl-] comes back'],
      ['s', 'stop it'],
      ['c', 'continue it, if it stopped, failed or was killed'],
      ['v', 'review its files one by one (ags review)'],
      ['m', 'merge it into the branch that it started from'],
    ],
  ],
  [
    'A log or the changes',
    [
      ['Up Down, j k', 'a line up or down; PgUp, PgDn and Space: a screen'],
      ['Home End, g G', 'to the beginning or the end; at its end a log follows'],
      ['v', 'in a log: all details'],
      ['n p', 'in the changes: next and previous file'],
    ],
  ],
  [
    'Everywhere',
    [
      ['Esc, q', 'back; in the list, q quits'],
      ['Ctrl-L', 'draw the screen anew'],
      ['Ctrl-Z', 'suspend; fg comes back'],
      ['Ctrl-C', 'quit at once; tasks keep running'],
    ],
  ],
];

function helpLines(): Line[] {
  return [
    ...KEYS.flatMap(([title, keys]): Line[] => [
      [span(title, 'bold')],
      ...keys.map(([key, means]): Line => [...pad([span(`  ${key}`)], 16), span(means)]),
      BLANK,
    ]),
    [span('Nothing is changed before you have chosen it in a question, with the arrow keys and Enter.')],
  ];
}
