// cli/goals-file.ts: the goals in a file: one per line, or per list item with its indented lines. Pure.
// Settings of one goal stand in brackets at the end of a line: "- Fix the login (name: login, after: setup, max-cost: 2)".
import type { GoalSettings } from '../agent-run/start.ts';
import { AgsError } from '../protocol/errors.ts';
import { visible } from '../lib/sanitize.ts';
import { readDollars, readDuration, readTokens, readWhole } from './limit-values.ts';

export interface FileGoal extends GoalSettings {
  /** Of the goal's first line, counted from 1. */
  readonly line: number;
  readonly text: string;
  readonly name?: string;
  /** The name of the task that must have ended well before this one starts. */
  readonly after?: string;
}

export interface GoalsFile {
  readonly goals: readonly FileGoal[];
  /** Lines that start no task, and why. Headings and empty lines separate goals and are not listed. */
  readonly leftOut: readonly { readonly line: number; readonly text: string; readonly why: string }[];
}

export function readGoalsFile(text: string): GoalsFile {
  const lines = text.split(/\r?\n/);
  const hasItems = lines.some((line) => ITEM.test(line));
  const goals: FileGoal[] = [];
  const leftOut: { line: number; text: string; why: string }[] = [];
  // Indented lines belong to the item above them; those of a done item are left out with it.
  let item: 'open' | 'done' | null = null;
  for (const [i, line] of lines.entries()) {
    const words = line.trim();
    if (words === '' || line.startsWith('#')) {
      if (words !== '') item = null;
      continue;
    }
    const [, mark, first] = ITEM.exec(line) ?? [];
    if (!hasItems) goals.push(withLine({ line: i + 1, text: '' }, words, i + 1));
    else if (first !== undefined) {
      item = mark === undefined || mark === ' ' ? 'open' : 'done';
      if (item === 'open') goals.push(withLine({ line: i + 1, text: '' }, first, i + 1));
      else leftOut.push({ line: i + 1, text: first, why: 'done' });
    } else if (item !== null && /^\s/.test(line)) {
      const last = goals.at(-1);
      if (item === 'open' && last !== undefined) goals[goals.length - 1] = withLine(last, words, i + 1);
    } else {
      item = null;
      leftOut.push({ line: i + 1, text: words, why: 'not a list item' });
    }
  }
  return { goals, leftOut };
}

const ITEM = /^(?:[-*+]|\d+[.)])\s+(?:\[([ xX])\]\s+)?(.*\S)\s*$/;

/** Adds a line of text to the goal, and the settings at its end. */
function withLine(goal: FileGoal, words: string, line: number): FileGoal {
  const [, text = words, list] = SETTINGS.exec(words) ?? [];
  const joined = [goal.text, text].filter((part) => part !== '').join('\n');
  if (list === undefined) return { ...goal, text: joined };
  const added: Partial<FileGoal> = {};
  // A value may have commas: only one before the next key separates.
  for (const part of list.split(/,\s*(?=[a-z][a-z-]*:\s)/)) {
    const [, key = '', value = ''] = /^([a-z][a-z-]*):\s*(.*)$/.exec(part.trim()) ?? [];
    const read = Object.hasOwn(KEYS, key) ? KEYS[key] : undefined;
    if (read === undefined)
      throw new AgsError('usage.invalid', `Line ${line}: there is no setting "${visible(key)}".`, {
        hint: `Settings of a goal: ${Object.keys(KEYS).join(', ')}. If it belongs to the goal, put a full stop behind the bracket.`,
      });
    const setting = read(value.trim(), `Line ${line}: ${key}`);
    const [field = ''] = Object.keys(setting);
    if (field in goal || field in added)
      throw new AgsError('usage.invalid', `Line ${line}: this goal has two settings "${key}".`, {
        hint: 'Keep one of them.',
      });
    Object.assign(added, setting);
  }
  return { ...goal, ...added, text: joined };
}

const SETTINGS = /^(.*?)\s*\(([a-z][a-z-]*:\s[^()]*)\)$/;

const KEYS: Readonly<Record<string, (value: string, label: string) => Partial<FileGoal>>> = {
  name: (value, label) => ({ name: checkedName(value, label) }),
  agent: (value, label) => ({ agent: filled(value, label) }),
  model: (value, label) => ({ model: filled(value, label) }),
  'max-time': (value, label) => ({ maxSeconds: readDuration(value, label) }),
  'max-cost': (value, label) => ({ maxCostMicros: readDollars(value, label) }),
  'max-turns': (value, label) => ({ maxTurns: readWhole(value, label, 1, 100_000) }),
  'max-tokens': (value, label) => ({ maxTokens: readTokens(value, label) }),
  after: (value, label) => ({ after: checkedName(value, label) }),
};

export const TASK_NAME = /^[a-z0-9][a-z0-9-]{0,39}$/;

function filled(value: string, label: string): string {
  if (value !== '') return value;
  throw new AgsError('usage.invalid', `${label} has no value.`);
}

function checkedName(value: string, label: string): string {
  if (TASK_NAME.test(value)) return value;
  throw new AgsError(
    'usage.invalid',
    `${label}: "${visible(value)}" is not a valid name: use up to 40 lowercase letters, digits and hyphens.`,
  );
}
