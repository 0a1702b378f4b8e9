// web/src/shell/notify.ts: system notifications for tasks that need the user, are ready or have failed. None for progress, none
// while the window has focus; several at once become one.
// Invariant: text from an agent is sanitized and shortened before the system shows it.
import { useEffect, useRef } from 'react';
import type { ApiTask } from '../../../src/protocol/api/api.ts';
import { usePreference, writePreference } from '../look/preferences.ts';
import { cleanLine } from '../text/clean.ts';
import { stateWord } from '../ui/state-badge.tsx';

const TOGETHER_MS = 10_000;
const LONGEST = 240;

type NotificationState = 'on' | 'off' | 'unknown' | 'impossible';

export function useNotificationState(): NotificationState {
  const [wanted] = usePreference<boolean | null>('notify', null);
  if (!('Notification' in globalThis) || Notification.permission === 'denied') return 'impossible';
  if (wanted === null || Notification.permission !== 'granted') return 'unknown';
  return wanted ? 'on' : 'off';
}

/** Asks the browser for permission. Call it only from a click. */
export async function requestNotifications(): Promise<boolean> {
  const granted = (await Notification.requestPermission()) === 'granted';
  writePreference('notify', granted);
  return granted;
}

export function useNotifications(news: readonly ApiTask[]): void {
  const notifying = useNotificationState();
  // One entry per task with its latest state: a task may need the user and be ready a moment later.
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
      : `${tasks.length} tasks need attention`;
  const body = tasks.map((task) => cleanLine(tasks.length === 1 ? (task.reason ?? '') : task.title, 80)).join('\n');
  const notification = new Notification(title, { body: body.slice(0, LONGEST), tag: 'ags' });
  notification.addEventListener('click', () => {
    window.focus();
    notification.close();
  });
}
