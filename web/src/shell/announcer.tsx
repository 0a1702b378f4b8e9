// web/src/shell/announcer.tsx: announces tasks that need attention: to screen readers, in the tab's title and icon, and as
// notifications of the operating system.
import { useEffect, useRef, useState } from 'react';
import type { ReactNode } from 'react';
import type { ApiTask } from '../../../src/protocol/api/api.ts';
import { useTasks } from '../api/queries.ts';
import { cleanLine } from '../text/clean.ts';
import { stateWord } from '../ui/state-badge.tsx';
import { useCurrentProject } from './current.ts';
import { tasksToAnnounce } from './news.ts';
import { useNotifications } from './notify.ts';

const NONE: readonly ApiTask[] = [];

export function Announcer(): ReactNode {
  const { data } = useTasks();
  const project = useCurrentProject();
  const before = useRef<ReadonlyMap<string, string> | null>(null);
  const [news, setNews] = useState(NONE);
  useEffect(() => {
    if (data === undefined) return;
    const fresh = tasksToAnnounce(before.current, data.tasks);
    before.current = new Map(data.tasks.map(({ id, state }) => [id, state]));
    if (fresh.length > 0) setNews(fresh);
  }, [data]);
  useNotifications(news);

  const waiting = (data?.tasks ?? NONE).filter(({ group }) => group === 'needs-you').length;
  const name = project === null ? 'ags' : `${cleanLine(project.name, 60)} · ags`;
  useEffect(() => {
    document.title = waiting === 0 ? name : `(${waiting}) ${name}`;
    document
      .querySelector('link[rel=icon]')
      ?.setAttribute('href', waiting === 0 ? '/favicon.svg' : '/favicon-waiting.svg');
  }, [waiting, name]);

  const words = (wanted: boolean): string =>
    news
      .filter(({ group }) => (group === 'needs-you') === wanted)
      .map((task) => `${cleanLine(task.title, 80)}: ${stateWord(task.state)}`)
      .join('. ');
  return (
    <div className="unseen">
      <div aria-live="polite">{words(false)}</div>
      <div aria-live="assertive">{words(true)}</div>
    </div>
  );
}
