// web/src/shell/notify.ts: tells somebody who looks elsewhere that a task needs him, is ready or has failed. Never about progress,
// never while the window has the focus, and several at once are one.
// Invariant: words of an agent are cleaned and cut before the system shows them.
import { useEffect, useRef } from 'react';
import type { ApiTask } from '../../../src/protocol/api/api.ts';
import { usePreference, writePreference } from '../look/preferences.ts';
import { cleanLine } from '../text/clean.ts';
import { stateWord } from '../ui/state-badge.tsx';

const TOGETHER_MS = 10_000;
const LONGEST = 240;

type Notifying = 'on' | 'off' | 'unknown' | 'impossible';

export function useNotifying(): Notifying {
  const [wanted] = usePreference<boolean | null>('notify', null);
  if (!('Notification' in globalThis) || Notification.permission === 'denied') return 'impossible';
  if (wanted === null || Notification.permission !== 'granted') return 'unknown';
  return wanted ? 'on' : 'off';
}

/** Asks the browser for the permission; only ever after somebody pressed a button. */
export async function askToNotify(): Promise<boolean> {
  const granted = (await Notification.requestPermission()) === 'granted';
  writePreference('notify', granted);
  return granted;
}

/** What became of interest between two states of the list. */
export function newlyOfInterest(before: ReadonlyMap<string, string>, tasks: readonly ApiTask[]): readonly ApiTask[] {
  return tasks.filter(({ id, group, state, kind }) => {
    const was = before.get(id);
    return kind === 'agent' && was !== undefined && was !== state && (group === 'needs-you' || group === 'look');
  });
}

/** `news`: what has become of interest since the last time. */
export function useNotifications(news: readonly ApiTask[]): void {
  const notifying = useNotifying();
  // Each once, as it is now: a task may need somebody and be ready a moment later.
  const waiting = useRef(new Map<string, ApiTask>());
  const lastAt = useRef(0);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  useEffect(() => {
    if (notifying !== 'on' || news.length === 0 || document.hasFocus()) return;
    for (const task of news) waiting.current.set(task.id, task);
    const wait = Math.max(200, lastAt.current + TOGETHER_MS - Date.now());
    timer.current ??= setTimeout(() => {
      timer.current = undefined;
      lastAt.current = Date.now();
      if (!document.hasFocus()) show([...waiting.current.values()]);
      waiting.current.clear();
    }, wait);
  }, [news, notifying]);
}

function show(tasks: readonly ApiTask[]): void {
  const [first] = tasks;
  if (first === undefined) return;
  const title =
    tasks.length === 1
      ? `${stateWord(first.state)}: ${cleanLine(first.title, 80)}`
      : `${tasks.length} tasks wait for you`;
  const body = tasks.map((task) => cleanLine(tasks.length === 1 ? (task.reason ?? '') : task.title, 80)).join('\n');
  const notification = new Notification(title, { body: body.slice(0, LONGEST), tag: 'ags' });
  notification.addEventListener('click', () => {
    window.focus();
    notification.close();
  });
}
