// web/src/shell/shell.tsx: the frame of every page: navigation, search, connection state and global shortcuts.
import { Outlet, useLocation, useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import type { ReactNode } from 'react';
import { useKeyboard } from '../actions/keyboard.ts';
import type { ApiTask } from '../../../src/protocol/api/api.ts';
import { Palette } from '../actions/palette.tsx';
import { useAction } from '../actions/registry.ts';
import { ShortcutSheet } from '../actions/sheet.tsx';
import { useTasks } from '../api/queries.ts';
import { useShownTheme, useTheme } from '../look/theme.ts';
import { Toasts } from '../ui/toasts.tsx';
import { AddProject } from './add-project.tsx';
import { Announcer } from './announcer.tsx';
import { Nav } from './nav.tsx';
import { TopBar } from './top-bar.tsx';
import { useCurrent } from './current.ts';
import { WifiOff } from 'lucide-react';
import { useConnection, useLive } from '../live/live.tsx';
import { Button } from '../ui/button.tsx';
import { useNow } from '../ui/now.ts';

type Overlay = 'palette' | 'keys' | 'add-project' | null;

export function Shell(): ReactNode {
  const [overlay, setOverlay] = useState<Overlay>(null);
  const close = (): void => setOverlay(null);
  useKeyboard();
  useAction('palette', () => setOverlay('palette'));
  useAction('keys', () => setOverlay('keys'));
  useAction('add-project', () => setOverlay('add-project'));
  useNavigationActions();
  return (
    <Toasts>
      <a
        href="#content"
        className="fixed top-2 left-2 z-50 -translate-y-20 rounded-md bg-accent px-3 py-2 text-on-accent focus:translate-y-0"
      >
        Skip to content
      </a>
      <div className="grid h-dvh grid-rows-[auto_auto_minmax(0,1fr)] md:grid-cols-[14rem_minmax(0,1fr)]">
        <Nav onAdd={() => setOverlay('add-project')} className="hidden md:row-span-3 md:flex" />
        <TopBar onAdd={() => setOverlay('add-project')} />
        <ConnectionBanner />
        <main
          id="content"
          tabIndex={-1}
          className="min-h-0 overflow-x-hidden overflow-y-auto outline-none md:col-start-2"
        >
          <Outlet />
        </main>
      </div>
      {overlay === 'palette' ? <Palette onClose={close} /> : null}
      {overlay === 'keys' ? <ShortcutSheet onClose={close} /> : null}
      <AddProject open={overlay === 'add-project'} onClose={close} />
      <Announcer />
    </Toasts>
  );
}

/** Shortcuts that work on every page. */
function useNavigationActions(): void {
  const navigate = useNavigate();
  const { project, task } = useCurrent();
  const inReview = useLocation({ select: ({ pathname }) => pathname.endsWith('/changes') });
  const { data } = useTasks();
  const [, setTheme] = useTheme();
  const shown = useShownTheme();
  const waiting = (data?.tasks ?? []).filter(({ group }) => group === 'needs-you');
  const goTo = (next: ApiTask | undefined): void => {
    if (next !== undefined)
      void navigate({ to: '/p/$project/t/$task', params: { project: next.project, task: next.id }, search: {} });
  };
  const go = (step: 1 | -1): void => {
    const at = waiting.findIndex(({ id }) => id === task);
    goTo(waiting.at(at < 0 ? (step === 1 ? 0 : -1) : (at + step) % waiting.length));
  };
  useAction('nth-needs-you', (keys) => goTo(waiting[Number(/\d$/.exec(keys)?.[0] ?? 1) - 1]), waiting.length > 0);
  useAction('next-needs-you', () => go(1), waiting.length > 0);
  useAction('previous-needs-you', () => go(-1), waiting.length > 0);
  useAction(
    'go-tasks',
    () => void navigate({ to: '/p/$project', params: { project: project ?? '' }, search: {} }),
    project !== null,
  );
  useAction(
    'go-network',
    () => void navigate({ to: '/p/$project/network', params: { project: project ?? '' }, search: {} }),
    project !== null,
  );
  useAction('go-settings', () => void navigate({ to: '/settings' }));
  useAction('theme', () => setTheme(shown === 'dark' ? 'light' : 'dark'));
  useAction(
    'up',
    () =>
      void (inReview
        ? navigate({ to: '/p/$project/t/$task', params: { project: project ?? '', task: task ?? '' }, search: {} })
        : navigate({ to: '/p/$project', params: { project: project ?? '' }, search: {} })),
    task !== null && project !== null,
  );
}

const QUIET_MS = 2000;

function ConnectionBanner(): ReactNode {
  const { state } = useConnection();
  return <div className="md:col-start-2">{state === 'lost' ? <Lost /> : null}</div>;
}

function Lost(): ReactNode {
  const live = useLive();
  const { retryAtMs, lostAtMs } = useConnection();
  const now = useNow();
  if (lostAtMs === null || now - lostAtMs < QUIET_MS) return null;
  const seconds = retryAtMs === null ? 0 : Math.max(0, Math.ceil((retryAtMs - now) / 1000));
  return (
    <div role="status" className="flex min-h-10 flex-wrap items-center gap-x-3 gap-y-1 bg-warn-bg px-4 py-1 text-warn">
      <WifiOff size={16} aria-hidden />
      <span className="grow">
        The server is unreachable. Running tasks continue; this page may be out of date.{' '}
        <span className="tabular">{seconds > 0 ? `Retrying in ${seconds} s.` : 'Retrying…'}</span>
      </span>
      <Button size="small" onClick={() => live.retryNow()}>
        Retry now
      </Button>
    </div>
  );
}
