// web/src/shell/top-bar.tsx: the current project, the search, and the tasks that need the user.
import { Dialog } from '@base-ui/react/dialog';
import { useNavigate } from '@tanstack/react-router';
import { Bell, BellRing, Menu as MenuSign, Search } from 'lucide-react';
import { useState } from 'react';
import type { ReactNode } from 'react';
import { runAction } from '../actions/registry.ts';
import { Keys } from '../actions/keys.tsx';
import { useTasks } from '../api/queries.ts';
import { cleanLine } from '../text/clean.ts';
import { plural } from '../text/format.ts';
import { IconButton } from '../ui/button.tsx';
import { Menu, MenuItem } from '../ui/menu.tsx';
import { showToast } from '../ui/toasts.tsx';
import { useCurrentProject } from './current.ts';
import { Nav } from './nav.tsx';
import { requestNotifications, useNotificationState } from './notify.ts';

export function TopBar({ onAdd }: { onAdd: () => void }): ReactNode {
  const project = useCurrentProject();
  const [open, setOpen] = useState(false);
  return (
    <header className="flex h-12 items-center gap-2 border-b border-line px-3 md:col-start-2 md:px-4">
      <Dialog.Root open={open} onOpenChange={setOpen}>
        <Dialog.Trigger render={<IconButton label="Navigation" className="md:hidden" />}>
          <MenuSign size={18} aria-hidden />
        </Dialog.Trigger>
        <Dialog.Portal>
          <Dialog.Backdrop className="fixed inset-0 z-40 bg-[rgb(8_10_14/45%)]" />
          <Dialog.Popup
            aria-label="Navigation"
            className="fixed inset-y-0 left-0 z-50 w-64 shadow-pop outline-none"
            onClick={(event) => {
              if (event.target instanceof Element && event.target.closest('a') !== null) setOpen(false);
            }}
          >
            <Nav onAdd={onAdd} className="flex h-full" />
          </Dialog.Popup>
        </Dialog.Portal>
      </Dialog.Root>
      <p className="min-w-0 truncate font-semibold">{project === null ? 'ags' : cleanLine(project.name)}</p>
      {project?.branch == null ? null : (
        <p className="hidden min-w-0 truncate text-sm text-muted sm:block">{cleanLine(project.branch)}</p>
      )}
      <div className="grow" />
      <button
        type="button"
        onClick={() => runAction('palette')}
        className="hidden h-8 w-72 items-center gap-2 rounded-md border border-line bg-panel px-2 text-muted hover:bg-raised lg:flex"
      >
        <Search size={16} aria-hidden />
        <span className="grow text-left">Search or run a command</span>
        <Keys keys="mod+k" />
      </button>
      <IconButton label="Search or run a command" className="lg:hidden" onClick={() => runAction('palette')}>
        <Search size={18} aria-hidden />
      </IconButton>
      <WaitingTasks />
    </header>
  );
}

function WaitingTasks(): ReactNode {
  const navigate = useNavigate();
  const { data } = useTasks();
  const notifying = useNotificationState();
  const waiting = (data?.tasks ?? []).filter(({ group }) => group === 'needs-you');
  const label = waiting.length === 0 ? 'No task needs you' : `${plural(waiting.length, 'task')} waiting for you`;
  return (
    <Menu
      trigger={
        <IconButton label={label} className="relative">
          <Bell size={18} aria-hidden />
          {waiting.length === 0 ? null : (
            <span className="tabular absolute -top-0.5 -right-0.5 rounded-full bg-warn px-1 text-[11px] leading-4 font-semibold text-bg">
              {waiting.length}
            </span>
          )}
        </IconButton>
      }
    >
      {waiting.slice(0, 20).map((task) => (
        <MenuItem
          key={task.id}
          onPick={() =>
            void navigate({ to: '/p/$project/t/$task', params: { project: task.project, task: task.id }, search: {} })
          }
        >
          <span className="block truncate">{cleanLine(task.title, 80)}</span>
          <span className="block truncate text-xs text-warn">{cleanLine(task.reason ?? 'needs you', 80)}</span>
        </MenuItem>
      ))}
      {waiting.length === 0 ? <p className="px-2 py-1.5 text-muted">No task needs you.</p> : null}
      {notifying === 'unknown' ? (
        <MenuItem
          icon={<BellRing size={16} aria-hidden />}
          onPick={() =>
            void requestNotifications().then((on) =>
              showToast(
                on ? 'Notifications are on.' : 'The browser blocks notifications. Allow them in its site settings.',
              ),
            )
          }
        >
          Turn on notifications
        </MenuItem>
      ) : null}
    </Menu>
  );
}
